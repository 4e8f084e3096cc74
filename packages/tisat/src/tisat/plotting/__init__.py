"""Results as pages: self-contained HTML with inline pictures, no network, no script from elsewhere. Nothing is computed here."""
