"""A seccomp filter, assembled by hand: what a jailed process may not ask of the kernel.

It lists what is refused, since programs use system calls we cannot foresee;
numbers newer than the list are refused whole.
"""

import ctypes
import errno
import struct
from collections.abc import Callable, Iterable

from cbench_server.sandbox.syscall_numbers import LAST_KNOWN, NUMBERS
from cbench_server.sandbox.syscalls import (
    ARCHITECTURE,
    PR_SET_PDEATHSIG,
    Unsupported,
    prepare,
)

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_REFUSED = " ".join(
    (
        # new processes and programs
        "fork vfork execve execveat",
        # anything that could reach another machine, process or user
        "socket connect bind listen sendmsg sendmmsg",
        "ptrace process_vm_readv process_vm_writev kcmp pidfd_open pidfd_getfd",
        "pidfd_send_signal tkill rt_sigqueueinfo rt_tgsigqueueinfo process_madvise",
        "process_mrelease get_robust_list migrate_pages move_pages setpriority",
        "ioprio_set sched_setparam sched_setscheduler sched_setattr sched_setaffinity",
        # memory that no limit counts, and shared memory
        "memfd_create memfd_secret shmget shmat shmctl semget semop semctl",
        "semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink",
        "mq_timedsend mbind set_mempolicy set_mempolicy_home_node",
        # namespaces, mounts and devices
        "unshare setns mount umount2 pivot_root chroot open_tree move_mount",
        "fsopen fsconfig fsmount fspick mount_setattr statmount listmount",
        "mknod mknodat swapon swapoff quotactl quotactl_fd nfsservctl",
        "name_to_handle_at open_by_handle_at fanotify_init fanotify_mark",
        # kernel surface that no solution needs
        "io_uring_setup io_uring_enter io_uring_register bpf userfaultfd",
        "perf_event_open add_key request_key keyctl init_module finit_module",
        "delete_module create_module kexec_load kexec_file_load reboot syslog",
        "acct personality modify_ldt iopl ioperm uselib _sysctl",
        "lookup_dcookie vhangup sethostname setdomainname settimeofday adjtimex",
        "clock_settime clock_adjtime lsm_set_self_attr capset",
    )
).split()

# Landlock does not watch these: where the host's files are in sight, so must we.
_METADATA = [
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "truncate",
]

_LOAD, _SKIP, _RETURN = 0x20, 0x05, 0x06
_IF_EQUAL, _IF_ABOVE, _IF_AT_LEAST, _IF_BITS = 0x15, 0x25, 0x35, 0x45
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _FAIL | errno.EPERM
_UNKNOWN = _FAIL | errno.ENOSYS

_CLONE_THREAD = 0x10000
# By which the kernel is told whom to send a signal when something happens, and which.
_OWNING = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX
_IOCTLS = (
    0x5410,  # TIOCSPGRP
    0x5412,  # TIOCSTI: types for others
    0x541C,  # TIOCLINUX: pastes for others
    0x40045436,  # TIOCSIG
    0x8901,  # FIOSETOWN
    0x8902,  # SIOCSPGRP
    0x40086602,  # FS_IOC_SETFLAGS, which is metadata
    0x401C5820,  # FS_IOC_FSSETXATTR
)

_Instruction = tuple[int, int, int, int]


def build_filter(
    pid: int, *, host_files: bool, may_pass_descriptors: bool, architecture: str = ARCHITECTURE
) -> bytes:
    """Assemble the filter for the process `pid`, which may signal itself only.

    `host_files` says that files of the host are in sight, whose metadata must
    then be guarded here.
    """
    numbers = NUMBERS.get(architecture)
    if numbers is None:
        raise Unsupported(f"no filter for {architecture}")
    code: list[_Instruction] = [
        (_LOAD, 0, 0, 4),
        (_IF_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[architecture]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        # On x86_64 this also catches the x32 calls, which have a high bit set.
        (_IF_ABOVE, 0, 1, LAST_KNOWN),
        (_RETURN, 0, 0, _UNKNOWN),
    ]

    def on(name: str, *body: _Instruction) -> None:
        if name in numbers:
            code.extend([(_IF_EQUAL, 0, len(body), numbers[name]), *body])

    refused = {*_REFUSED, *(_METADATA if host_files else ())}
    if may_pass_descriptors:
        refused.remove("sendmsg")
    code += _refuse_all(numbers[name] for name in refused if name in numbers)
    # The C library falls back to clone, whose flags can be seen.
    on("clone3", (_RETURN, 0, 0, _UNKNOWN))
    on("clone", _low(0), (_IF_BITS, 1, 0, _CLONE_THREAD), *_refuse_else_allow())
    on("ioctl", _low(1), *_refuse_values(_IOCTLS))
    on("fcntl", _low(1), *_refuse_values(_OWNING))
    on("prctl", _low(0), (_IF_EQUAL, 0, 1, PR_SET_PDEATHSIG), *_refuse_else_allow())
    for name in ("kill", "tgkill"):
        on(name, _low(0), (_IF_EQUAL, 1, 0, pid), *_refuse_else_allow())
    on(
        "prlimit64",
        _low(0),
        (_IF_EQUAL, 2, 0, 0),
        (_IF_EQUAL, 1, 0, pid),
        *_refuse_else_allow(),
    )
    # No address: what socketpair connected stays connected.
    on(
        "sendto",
        _low(4),
        (_IF_EQUAL, 0, 2, 0),
        _high(4),
        (_IF_EQUAL, 1, 0, 0),
        *_refuse_else_allow(),
    )
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in code)


def prepare_filter(program: bytes) -> Callable[[], int]:
    """Return what puts a process, and all its threads to come, under a filter for good.

    The kernel wants PR_SET_NO_NEW_PRIVS first, of the process or of one it was forked from.
    """
    set_mode_filter = 1
    return prepare("seccomp", set_mode_filter, 0, _Header(len(program) // 8, program))


class _Header(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def _refuse_all(numbers: Iterable[int]) -> list[_Instruction]:
    """Refuse the numbers by their ranges: the kernel compiles filters per process."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    code: list[_Instruction] = [(_SKIP, 0, 0, 1), (_RETURN, 0, 0, _REFUSE)]
    for first, last in reversed(ranges):
        # The distance from the end of a comparison to the refusal, which stands last.
        away = len(code) - 1
        if first == last:
            code.insert(0, (_IF_EQUAL, away, 0, first))
        else:
            code[:0] = [(_IF_AT_LEAST, 0, 1, first), (_IF_ABOVE, 0, away, last)]
    return code


def _refuse_values(values: tuple[int, ...]) -> list[_Instruction]:
    """Refuse a call whose loaded argument is one of the values, else allow it."""
    ahead = range(len(values), 0, -1)
    tests = [(_IF_EQUAL, away, 0, value) for away, value in zip(ahead, values, strict=True)]
    return [*tests, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]


def _low(argument: int) -> _Instruction:
    return (_LOAD, 0, 0, 16 + 8 * argument)


def _high(argument: int) -> _Instruction:
    return (_LOAD, 0, 0, 20 + 8 * argument)


def _refuse_else_allow() -> tuple[_Instruction, _Instruction]:
    return (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)
