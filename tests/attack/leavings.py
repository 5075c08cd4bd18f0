"""What a user of a stage has left in folders that everybody shares."""

from pathlib import Path

SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


def owned_in_shared_folders(uid: int) -> list[Path]:
    found = []
    for folder in SHARED:
        for path in folder.iterdir():
            try:
                if path.lstat().st_uid == uid:
                    found.append(path)
            except FileNotFoundError:
                continue  # another test's
    return found
