"""Views of a series: one file each, and the only list of them.

A view looks at scaled rows in one way and says, for each row and channel, how far it is from normal. What one view
is blind to another sees; each says both. :class:`tisat.detectors.Prism` fuses them. To add a view, write one file and one
line here.
"""

from __future__ import annotations

from tisat.detectors.prism.activity import Activity
from tisat.detectors.prism.error import Error
from tisat.detectors.prism.joint import Joint
from tisat.detectors.prism.neighbour import Neighbour
from tisat.detectors.prism.relations import Relations
from tisat.detectors.prism.rhythm import Rhythm
from tisat.detectors.prism.view import Scene, View

VIEWS: dict[str, type[View]] = {view.name: view for view in (Error, Joint, Neighbour, Activity, Relations, Rhythm)}

__all__ = ["VIEWS", "Scene", "View"]
