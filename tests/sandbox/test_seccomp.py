"""The filter, run by a small machine of our own, on both architectures."""

import errno
import struct

import pytest

from cbench_server.sandbox.seccomp import build_filter
from cbench_server.sandbox.syscall_numbers import LAST_KNOWN, NUMBERS

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
REFUSE, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
PID = 77


def decide(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """Run a filter as the kernel does and return its verdict."""
    words = [each & 0xFFFFFFFFFFFFFFFF for each in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    code = list(struct.iter_unpack("<HBBI", program))
    position = accumulator = 0
    while True:
        operation, if_true, if_false, value = code[position]
        position += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:
            return value
        elif operation == 0x05:
            position += value
        else:
            holds = {
                0x15: accumulator == value,
                0x25: accumulator > value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[operation]
            position += if_true if holds else if_false


@pytest.fixture(params=NUMBERS)
def architecture(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def ask(
    architecture: str, name: str, *arguments: int, host_files: bool = False, is_tester: bool = False
) -> int:
    program = build_filter(
        PID, host_files=host_files, may_pass_descriptors=is_tester, architecture=architecture
    )
    return decide(program, AUDIT[architecture], NUMBERS[architecture][name], arguments)


@pytest.mark.parametrize(
    "name",
    [
        *("execve", "socket", "connect", "bind", "sendmsg", "ptrace", "process_vm_readv"),
        *("memfd_create", "shmget", "mq_open", "unshare", "mount", "setns", "bpf", "keyctl"),
        *("io_uring_setup", "pidfd_open", "pidfd_send_signal", "perf_event_open", "tkill"),
        *("rt_sigqueueinfo", "capset", "open_by_handle_at", "userfaultfd", "move_mount"),
    ],
)
def test_a_dangerous_call_is_refused(architecture: str, name: str) -> None:
    assert ask(architecture, name) == REFUSE


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("clone", (0x3D0F00,), ALLOW),
        ("clone", (0x11,), REFUSE),
        ("clone", (0x20000011,), REFUSE),
        ("clone3", (), UNKNOWN),
        ("kill", (PID, 9), ALLOW),
        ("kill", (0, 9), REFUSE),
        ("kill", (-1, 9), REFUSE),
        ("kill", (1, 9), REFUSE),
        ("tgkill", (PID, 78, 9), ALLOW),
        ("tgkill", (1, 1, 9), REFUSE),
        ("prlimit64", (0, 7), ALLOW),
        ("prlimit64", (PID, 7), ALLOW),
        ("prlimit64", (1, 7), REFUSE),
        ("sendto", (3, 0, 0, 0, 0), ALLOW),
        ("sendto", (3, 0, 0, 0, 0x1234), REFUSE),
        ("sendto", (3, 0, 0, 0, 0x1234 << 32), REFUSE),
        ("ioctl", (0, 0x5401), ALLOW),
        *(("ioctl", (0, value), REFUSE) for value in (0x5410, 0x5412, 0x541C, 0x40045436)),
        *(("ioctl", (0, value), REFUSE) for value in (0x8901, 0x8902, 0x40086602, 0x401C5820)),
        ("ioctl", (0, 0x8903), ALLOW),
        ("fcntl", (0, 4, 0o20000), ALLOW),
        *(("fcntl", (0, value, PID), REFUSE) for value in (8, 10, 15)),
        ("fcntl", (0, 8 | 1 << 32, PID), REFUSE),
        ("prctl", (15, 0), ALLOW),
        ("prctl", (1, 0), REFUSE),
    ],
)
def test_some_calls_depend_on_their_arguments(
    architecture: str, name: str, arguments: tuple[int, ...], expected: int
) -> None:
    assert ask(architecture, name, *arguments) == expected


@pytest.mark.parametrize(
    "name",
    [
        *("fchmodat", "fchownat", "utimensat", "truncate", "setxattr"),
        *("fchmod", "fchown", "fsetxattr", "fremovexattr"),
    ],
)
def test_metadata_is_guarded_where_the_hosts_files_are_in_sight(
    architecture: str, name: str
) -> None:
    assert ask(architecture, name, host_files=True) == REFUSE
    assert ask(architecture, name, host_files=False) == ALLOW


def test_only_the_tester_may_pass_descriptors(architecture: str) -> None:
    assert ask(architecture, "sendmsg", is_tester=True) == ALLOW


@pytest.mark.parametrize("number", [LAST_KNOWN + 1, 999, 0x40000000, 0x40000001, 0xFFFFFFFF])
def test_calls_newer_than_the_list_do_not_exist(architecture: str, number: int) -> None:
    program = build_filter(
        PID, host_files=False, may_pass_descriptors=False, architecture=architecture
    )
    assert decide(program, AUDIT[architecture], number) == UNKNOWN


def test_another_architecture_is_killed(architecture: str) -> None:
    program = build_filter(
        PID, host_files=False, may_pass_descriptors=False, architecture=architecture
    )
    assert decide(program, 0x40000003, 11) == KILL


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(OSError, match="no filter for vax"):
        build_filter(PID, host_files=False, may_pass_descriptors=False, architecture="vax")
