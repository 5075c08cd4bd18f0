"""What the harness lends the judge for one job."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from thermite.judge.build.store import BuildStore
from thermite.rig.stages import Stages
from thermite.schema.kit import Kit
from thermite.schema.stage import Entry
from thermite.schema.strict import Strict


@dataclass(frozen=True)
class Desk:
    """The rig's stages, the kit, and where facts and builds go.

    kit_folder: the kit's files at its commit; export: a commit's files, raising
    `SourceRefused` when they can't be built; append: one call is one transaction, returns
    when it is durable; stopping: asked between two blocks; scratch: a folder of the
    harness for this job; toolchain: identity of the compilers (Kit manifest, Build cache);
    target: the rig's; models: imported model files by SHA-256.
    """

    stages: Stages
    kit: Kit
    kit_folder: Path
    export: Callable[[str], list[Entry]]
    store: BuildStore
    append: Callable[[Sequence[Strict]], None]
    stopping: Callable[[], bool]
    scratch: Path
    toolchain: str
    target: str = "cpu"
    agents_during_timing: str = "frozen"
    models: Mapping[str, Path] = field(default_factory=dict)
