"""Patterns of alarms that people know: proposed from labels, in force once somebody takes one.

An alarm of a pattern in force is *known*: it is raised, counted and shown, and nobody is called; see :mod:`tisat.alarms.patterns`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tisat.alarms import Alarm
from tisat.alarms.patterns import PROPOSING, Pattern, PatternProposal, known_by, propose_patterns
from tisat.utils.types import JsonDict

if TYPE_CHECKING:
    from tisat_serve.feedback.operator import OperatorFeedback
    from tisat_serve.structs import ProposalInfo

KIND = "pattern"
MOST = 2000  # alarms of a group that a pattern is made from and checked on, the latest


class KnownPatterns:
    """Proposes patterns and puts them in force.

    Parameters
    ----------
    people : OperatorFeedback
    """

    def __init__(self, feedback: OperatorFeedback) -> None:
        self.feedback, self.engine, self.view, self.store = feedback, feedback.engine, feedback.view, feedback.store

    def offer(self, group: str) -> None:
        """Propose a pattern for each kind of alarm that was marked false or expected.

        Nothing changes by it.

        One that waits already is brought up to date, and withdrawn where its labels were taken back.
        """
        if group not in self.engine.groups:
            return
        proposals = {self._key(one.pattern.to_json()): one for one in self._proposals(group)}
        open_ones = {}
        for number, text in self.store.read(
            "SELECT id, document FROM proposals WHERE grp = ? AND state = 'open' AND author = 'tisat'", (group,)
        ):
            document = json.loads(text)
            if document.get("kind") == KIND:
                open_ones[self._key(document["pattern"])] = number
        with self.store.writing() as write:
            for key, number in open_ones.items():
                if key in proposals:
                    text = json.dumps(self._document(group, proposals[key]))
                    values = (text, self._reason(proposals[key]), number)
                    write.execute("UPDATE proposals SET document = ?, reason = ? WHERE id = ?", values)
                else:
                    write.execute("UPDATE proposals SET state = 'left' WHERE id = ?", (number,))
        for key, one in proposals.items():
            if key not in open_ones:
                document, before = self._document(group, one), self.engine.groups[group].calibration
                self.feedback.store_proposal(group, "", document, before, "tisat", self._reason(one))

    @staticmethod
    def _reason(proposal: PatternProposal) -> str:
        return f"{proposal.labelled} alarm{'s' * (proposal.labelled != 1)} marked false or expected"

    @staticmethod
    def _key(pattern: JsonDict) -> tuple[str, str, str]:
        return pattern["kind"], pattern["mode"], pattern["day"]

    def _proposals(self, group: str) -> tuple[PatternProposal, ...]:
        """Patterns of labelled alarms that none in force knows."""
        query = (
            "SELECT document, (SELECT word FROM labels WHERE alarm = alarms.id ORDER BY labels.id DESC LIMIT 1) FROM alarms "
            "WHERE grp = ? AND sort = 'statistic' ORDER BY raised DESC LIMIT ?"
        )
        patterns = self.engine.groups[group].patterns
        alarms, labels = [], {}
        for k, (text, word) in enumerate(self.store.read(query, (group, MOST))):
            alarm = Alarm.from_json(json.loads(text))
            length = None if alarm.cleared is None else k + alarm.cleared - alarm.raised
            alarm = replace(alarm, raised=k, cleared=length)  # rows of several entities: by place
            alarms.append(alarm)
            if word not in (None, "unmarked"):
                labels[k] = "known" if word in PROPOSING and (alarm.known or known_by(alarm, patterns)) else word
        return propose_patterns(alarms, labels)

    def _document(self, group: str, proposal: PatternProposal) -> JsonDict:
        calibration = self.engine.groups[group].watch.calibration
        sentences = [
            f"Alarms of this kind would be known: {proposal.words}",
            "Known alarms are raised, counted and shown; nobody is called, unless further channels join, it is ongoing, or it grows beyond the limits.",
        ]
        return {
            "kind": KIND,
            "pattern": proposal.pattern.to_json(),
            "threshold_before": calibration.threshold,
            "threshold_after": calibration.threshold,
            "budget": calibration.budget,
            "sentences": sentences,
            "false_alarms": proposal.labelled,
            "avoided": proposal.avoided,
            "true_alarms": proposal.hidden,
            "missed": proposal.hidden,
            "unlabelled": proposal.unlabelled,
            "rows": 0,
            "seen": float(proposal.avoided + proposal.hidden + proposal.unlabelled),
        }

    def take(self, proposal: ProposalInfo, document: JsonDict, author: str, reason: str) -> None:
        """Put the pattern of a proposal in force."""
        pattern = Pattern.from_json(document["pattern"])
        values = (proposal.group, json.dumps(pattern.to_json()), str(pattern))
        document["number"] = self.feedback.add("patterns", values, "pattern", author, reason)
        with self.store.writing() as write:
            write.execute("UPDATE proposals SET document = ? WHERE id = ?", (json.dumps(document), proposal.id))
