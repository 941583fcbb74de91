"""Replicas that are attached: all processes that offer one name, as they come and go."""

from functools import partial

from cbench_server.rpc.attached import AttachedCaller, find_attached
from cbench_server.rpc.attachments import Attachment, Attachments
from cbench_server.spec import Options
from cbench_server.systems.replica import Replica
from cbench_server.systems.replicas import Replicas


def attached_replicas(
    attachments: Attachments, kind: str, name: str, options: Options, shown: str
) -> Replicas:
    """Return what calls all processes that offer a name; `shown` renames it."""

    def member(attachment: Attachment) -> Replica:
        caller = AttachedCaller(attachments, kind, name, options, shown, attachment)
        return Replica(attachment.id, caller, partial(_is_attached, caller))

    def refresh(group: Replicas) -> str:
        """Take in who has attached, and let go of who has left; one that changed is refused."""
        offering = {each.id: each for each in attachments.offering(kind, name)}
        roster = group.roster
        for each in [each for each in roster.members if each.name not in offering]:
            roster.remove(each, "it is not attached any more.")
        known = {each.name for each in roster.members}
        for attachment in [each for each in offering.values() if each.id not in known]:
            _, info = find_attached(attachments, kind, name)
            if info.version != version:
                return (
                    f'system "{name}" came back with version "{info.version}", and the run began '
                    f'with version "{version}"'
                )
            replica = member(attachment)
            group.welcome(replica)
            roster.add(replica)
        return ""

    members = [member(each) for each in attachments.offering(kind, name)]
    described = members[0].caller.description
    version = described.version
    return Replicas(described, members, refresh=refresh)


def _is_attached(caller: AttachedCaller) -> bool:
    return caller.is_connected
