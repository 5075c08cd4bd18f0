"""One attempt's change: from a proposer's entry or a worker's folder to a candidate commit.

A backend is asked for the next proposal of a lane and answers with a commit on the base, a
refusal, or nothing. Which entries are used up is read from the ledger, so that a restart
offers an entry again that a kill interrupted, and no other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, TypeAlias

from thermite.agent.propose.replay import Proposal, proposals, source_of
from thermite.campaign.state import Assignment
from thermite.errors import ContractError
from thermite.harness import candidate, clock
from thermite.harness.candidate import Candidate, Refused
from thermite.kit.export import tree_entries
from thermite.schema.ids import CommitId

AgentStatus: TypeAlias = Literal["ok", "no_change", "limit", "error", "refused", "killed"]


@dataclass(frozen=True)
class Work:
    """What an attempt's worker left.

    made: the candidate, why it is refused, or None when nothing changed; status and stop:
    as in `agent_finished`; transcript: what the agent said, or None.
    """

    made: Candidate | Refused | None
    status: AgentStatus = "ok"
    stop: str | None = None
    transcript: bytes | None = None


class Task(NamedTuple):
    """What an attempt sets out with.

    number: the attempt's; base: the commit that it changes; proposal: as `next_proposal` named
    it; brief: the very text whose digest the ledger has; log: where what a worker says is kept
    as it comes, or None.
    """

    number: int
    base: str
    proposal: str
    brief: str
    log: Path | None = None


class Backend(Protocol):
    """Where a lane's candidates come from."""

    def next_proposal(self, assignment: Assignment) -> str | None:
        """Return the name of what is offered next, "" when it has no name, None at the end."""

    def work(self, assignment: Assignment, task: Task) -> Work:
        """Make the candidate of one attempt."""

    def stop(self) -> None:
        """End the work that is under way, from another thread: the campaign is stopped now."""


def used(assignment: Assignment) -> set[str]:
    """Return the proposals that attempts took, but for those that a kill interrupted."""
    return {
        a.started.proposal
        for a in assignment.attempts.values()
        if a.started.proposal is not None and a.result != "killed"
    }


def attempt_ref(assignment: str, number: int) -> str:
    """Return the reference that keeps an attempt's candidate."""
    return f"refs/attempts/{assignment}/{number}"


class Replay:
    """The `replay` backend: known changes in the order of their names."""

    def __init__(self, repo: Path, assignment: Assignment) -> None:
        commit, folder = source_of(assignment.contract.agents.workers.options)
        self.repo = repo
        entries = tree_entries(repo, CommitId(commit))
        self.offers: dict[str, Proposal] = {p.name: p for p in proposals(entries, folder)}

    def next_proposal(self, assignment: Assignment) -> str | None:
        """Return the first entry that no attempt has used up."""
        taken = used(assignment)
        return next((name for name in self.offers if name not in taken), None)

    def work(self, assignment: Assignment, task: Task) -> Work:
        """Commit the entry on the base."""
        base = task.base
        offer, ref = self.offers[task.proposal], attempt_ref(assignment.id, task.number)
        at_s = int(clock.now().timestamp())
        if offer.patch is not None:
            commit = candidate.commit_patch(self.repo, base, offer.patch, ref=ref, at_s=at_s)
            if commit is None:
                return Work(Refused(f"patch does not apply to {base}", []))
        else:
            files, deletes = offer.files, offer.deletes
            commit = candidate.commit_files(self.repo, base, files, deletes, ref=ref, at_s=at_s)
        contract = assignment.contract
        made = candidate.inspect(
            self.repo,
            base,
            commit,
            contract.project.editable,
            most_mib=contract.budget.candidate_mib,
        )
        return Work(made, status="no_change" if made is None else "ok")

    def stop(self) -> None:
        """Do nothing: a commit is made at once."""


def backend_for(assignment: Assignment, repo: Path, command: Callable[[], Backend]) -> Backend:
    """Return the backend that the contract names.

    Args:
        command: makes the `command` backend, which needs a slot.

    Raises:
        ContractError: this version has no such backend.
    """
    name = assignment.contract.agents.workers.backend
    if name == "replay":
        return Replay(repo, assignment)
    if name == "command":
        return command()
    raise ContractError(f"backend {name} is not in this version: use replay or command")
