"""A model folder to the hub: looked at before anything is sent, in one commit, without pickles."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gemel.checkpoint import is_classifier_folder, read_classifier_folder
from gemel.checkpoint.resolving import HUB_NAME, is_offline
from gemel.errors import InvalidInput, InvalidModel, WriteFailed
from gemel.inventory import describe

# Pickles, which gemel would not open again, and what unfinished work has left.
UNWANTED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".h5", ".msgpack", ".draft", ".partial")
LOGIN = "log in with `hf auth login`, or set HF_TOKEN"


@dataclass(frozen=True)
class Published:
    """What the hub has now."""

    url: str
    commit: str
    private: bool
    files: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def push(
    folder: str | Path,
    name: str,
    *,
    public: bool = False,
    revision: str | None = None,
    message: str | None = None,
    token: str | None = None,
    endpoint: str | None = None,
) -> Published:
    """Send a model folder to the hub as OWNER/NAME; a new repository is private unless `public`.

    One that is there already keeps its visibility. Without `token` and `endpoint` they are those of the hub's
    own program: what `hf auth login` has kept, HF_TOKEN and HF_ENDPOINT.
    """
    from huggingface_hub import HfApi, get_token

    files = files_of(folder, name)
    if is_offline():
        raise InvalidInput("the hub is switched off by HF_HUB_OFFLINE; unset it to push")
    if token is None and get_token() is None:
        raise InvalidInput(f"no token for the hub was found, and writing needs one: {LOGIN}")
    api = HfApi(endpoint=endpoint, token=token, library_name="gemel")
    root = Path(folder).expanduser()
    with _told_plainly(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the hub's remarks on a card are no errors
        api.create_repo(name, private=not public, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        info = api.upload_folder(
            repo_id=name,
            folder_path=root,
            revision=revision,
            allow_patterns=[glob.escape(file.relative_to(root).as_posix()) for file in files],
            commit_message=message or "Upload with gemel",
        )
        is_private = bool(api.model_info(name).private)
    n_bytes = sum(file.stat().st_size for file in files)
    return Published(f"{api.endpoint}/{name}", info.oid, is_private, len(files), n_bytes)


def files_of(folder: str | Path, name: str) -> list[Path]:
    """The files of a model folder that a push would send; what is no model or no name is refused."""
    if not HUB_NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is no name on the hub; expected OWNER/NAME, such as ada/my-encoder")
    root = Path(folder).expanduser()
    _check_model(root)
    found = [
        file
        for file in sorted(root.rglob("*"))
        if file.is_file()
        and file.suffix not in UNWANTED
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
    ]
    code = next((file for file in found if file.suffix == ".py"), None)
    if code is not None:
        raise InvalidInput(
            f"{code} is a program, and a model folder is data only; take it out, or push it with the hub's "
            "own program"
        )
    return found


def _check_model(root: Path) -> None:
    """Refuse what would not open for those who get it."""
    try:
        if root.is_dir() and is_classifier_folder(root):
            read_classifier_folder(root)
        else:
            describe(root)
    except InvalidModel as error:
        inner = root / "model"
        if inner.is_dir():
            raise InvalidModel(f"{root} is a run of gemel train; push its model: {inner}") from None
        raise InvalidModel(f"{error}; nothing was pushed") from None


@contextmanager
def _told_plainly(name: str) -> Iterator[None]:
    """Within, what the hub refuses is told in one sentence."""
    from huggingface_hub import errors
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    # What a broken connection raises is the HTTP library's, which changes with the version of the hub's.
    broken: type[Exception] = vars(errors)["HTTPError"]
    owner = name.partition("/")[0]
    try:
        yield
    except HFValidationError as error:
        raise InvalidInput(f"{name!r} is no name on the hub ({error})") from None
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise InvalidInput(
                f"the hub refused the token for {name} ({status}); expected one that may write to {owner}: "
                f"make it at {_settings_page()}, then {LOGIN}"
            ) from None
        reason = error.server_message or str(error).strip().splitlines()[0]
        raise WriteFailed(f"the hub did not take {name} ({status}: {reason}); push again") from None
    except ValueError as error:  # the front matter of the card, looked at before anything is sent
        raise InvalidInput(f"the hub did not take {name}: {' '.join(str(error).split())}") from None
    except (broken, OSError, RuntimeError) as error:
        reason = str(error).strip() or type(error).__name__
        raise WriteFailed(
            f"{name} was not pushed ({reason}); push again, which sends only what is missing"
        ) from None


def _settings_page() -> str:
    return f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co').rstrip('/')}/settings/tokens"
