"""Membership of an elastic job: its processes agree, between two steps, on which of them train together.

The scheduler starts one process for each accelerator and says in a file which members there are to be (`SCHED_MEMBERS`). A process
that has started listens on its port, and joins when it is ready: until then the others train on. Standard library only, Python 3.8 or
newer; `goodput_elastic` uses it for PyTorch.

    members = goodput_members.Members()
    agreement = members.agree(step, has_state=members.founds)
    while training:
        ...one step, in which the members add up their gradients and their `members.change_wanted()`...
        if any member wanted a change, or a member was lost in the step:
            agreement = members.agree(step, lost=lost)     # then: leave, stop, or form the group anew and go on

The member with the lowest number that holds the state of the training leads. It waits for all others of the last agreement but those
that are certainly gone: nothing listens on their port any more (a process listens for as long as it lives), or the plan leaves them
out. Two halves of a cut network therefore never train both.
"""

import collections
import hmac
import json
import os
import socket
import sys
import threading
import time

import goodput_job

TRAIN, LEAVE, STOP = "train", "leave", "stop"

# Seconds: to connect to a member that lives, for the answer of one that waits for it, between two looks at those that are silent, and for
# a port to become free.
_CONNECT_S, _ANSWER_S, _LOOK_S, _BIND_S = 2.0, 5.0, 0.05, 10.0

# Longest line of a member, bytes.
_LONGEST_LINE = 1 << 20

Agreement = collections.namedtuple("Agreement", "outcome number numbers rank source transfer step nodes where anew")
Agreement.__doc__ = """What the members agreed on: `outcome` is TRAIN, LEAVE (exit 0) or STOP (write a checkpoint, exit 143).

`numbers` are the members in the order of their ranks and `rank` is this one's place among them. Where `transfer` is set, all take the
state of rank `source`, which is at `step`. `where` is the host of rank 0 and a port that was free there. `anew` is whether the group
has to be formed anew.
"""


class Members:
    """This process as a member of an elastic job; outside one, of a group that stays as it was started (by torchrun, or once a node)."""

    def __init__(self, job=None, environ=None, found_wait_s=60.0):
        env = os.environ if environ is None else environ
        self.job = job or goodput_job.Job(environ=environ)
        self.managed = "SCHED_MEMBERS" in env
        self.agreement = 0
        if self.managed:
            self.number = int(env["SCHED_MEMBER"])
            self.numbers = [self.number]
        else:
            self.number, world = _rank(env)
            self.numbers = list(range(world))
            self.job.rank = self.number
        self._master = (env.get("MASTER_ADDR", "127.0.0.1"), int(env.get("MASTER_PORT") or 0))
        self._node = env.get("SCHED_NODE", "")
        self._path = env.get("SCHED_MEMBERS")
        self._read = None
        self._plan = {"version": 0, "key": "", "founder": 0, "members": []}
        self._found_wait_s = found_wait_s
        self._step, self._has_state, self._nodes = 0, False, 1
        self._met = set()
        self._calls = {}
        self._called = threading.Condition()
        if self.managed:
            self._read_plan()
            self._listen()

    @property
    def founds(self):
        """Whether this member begins the training, from a checkpoint or anew; all others are given the state."""
        return self._plan["founder"] == self.number if self.managed else self.number == 0

    @property
    def leads(self):
        """Whether this member is rank 0: it reports, and it writes checkpoints."""
        return self.numbers[0] == self.number

    def reported(self):
        """For Job.report: which members train."""
        if not self.managed or self.agreement == 0:
            return {}
        return {"members": {"agreement": self.agreement, "nodes": self._nodes, "numbers": self.numbers}}

    # The plan of the scheduler

    def _read_plan(self):
        try:
            status = os.stat(self._path)
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp != self._read:
                with open(self._path) as file:
                    self._take_plan(json.load(file))
                self._read = stamp
        except (OSError, ValueError):
            pass  # The file is replaced as a whole, and is there again at the next look.
        return self._plan

    def _take_plan(self, plan):
        if plan["version"] > self._plan["version"]:
            self._plan = plan

    def _planned(self):
        return {member["number"]: member for member in self._plan["members"]}

    def _is_leaving(self, number):
        member = self._planned().get(number)
        return member is not None and member["leaving"]

    def _ends(self):
        """Whether the whole attempt is to end."""
        planned = self._plan["members"]
        return bool(planned) and all(member["leaving"] for member in planned)

    def change_wanted(self):
        """Whether this member knows of a change. Costs a few microseconds: call it in every step, and combine the answers of all."""
        if self.job.stop_wanted():
            return True
        if not self.managed:
            return False
        self._read_plan()
        leaving = [self._is_leaving(number) for number in self.numbers]
        if self._ends() or any(leaving) and not all(leaving):
            return True
        with self._called:
            return any(self._may_join(number, call) for number, (call, _) in self._calls.items() if number not in self.numbers)

    def _may_join(self, number, call):
        return not call["stops"] and not self._is_leaving(number)

    # What others are told

    def _listen(self):
        port = self._planned()[self.number]["port"]
        server = _socket()
        given_up = time.monotonic() + _BIND_S
        while True:
            try:
                server.bind(("", port))
                break
            except OSError as error:  # Some connection of this machine may have the port for a moment.
                if time.monotonic() > given_up:
                    print("port %d, on which other members look for this one: %s" % (port, error), file=sys.stderr)
                    sys.exit(goodput_job.TRY_AGAIN)
                time.sleep(0.1)
        server.listen(128)
        threading.Thread(target=self._serve, args=(server,), daemon=True).start()

    def _serve(self, server):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # For a moment there may be no descriptor left.
                time.sleep(0.1)
                continue
            threading.Thread(target=self._hear, args=(_Line(connection),), daemon=True).start()

    def _hear(self, line):
        try:
            call = line.read(_ANSWER_S)
            if not hmac.compare_digest(str(call["key"]).encode(), self._plan["key"].encode()):
                return line.close()
            if call["ask"] == "state":
                line.write(self._state())
                return line.close()
            with self._called:
                before = self._calls.get(call["number"])
                self._calls[call["number"]] = (call, line)
                self._called.notify_all()
            if before is not None:
                before[1].close()
        except (OSError, ValueError, KeyError, TypeError):  # Whatever was sent, it is no call of a member.
            line.close()

    def _state(self):
        return {"number": self.number, "agreement": self.agreement, "numbers": self.numbers, "has_state": self._has_state}

    # Agreeing

    def established(self, agreement):
        """Says that this member was given the state that the agreement is about, and holds it."""
        if self.managed:
            self._take(agreement, agreement.step)

    def agree(self, step, has_state=True, lost=False):
        """Waits until the members agree on how to go on after `step`. `lost`: the last step failed, and its group is of no use."""
        if not self.managed:
            if lost:
                raise ConnectionError("a process of the job was lost, and the job is not elastic")
            # All processes come here together, at first to begin and after that because one was told to stop.
            outcome, anew, self.agreement = STOP if self.agreement else TRAIN, self.agreement == 0, 1
            transfer = anew and len(self.numbers) > 1
            return Agreement(outcome, 1, self.numbers, self.number, 0, transfer, step, 1, self._master, anew)
        self._step, self._has_state = step, has_state
        while True:
            self._read_plan()
            if not has_state and (self.job.stop_wanted() or self._is_leaving(self.number)):
                return self._apart(LEAVE)
            states = self._look(set(self.numbers) | set(self._planned()) - {self.number})
            known = [state for state in states.values() if isinstance(state, dict) and state["has_state"]]
            newest = max(known, key=lambda state: state["agreement"], default=None)
            if has_state and newest is not None and newest["agreement"] > self.agreement:
                if self.number not in newest["numbers"]:
                    return self._apart(LEAVE if self._is_leaving(self.number) else STOP)
                self.agreement, self.numbers = newest["agreement"], newest["numbers"]
                continue
            leader = self._leader(states, known, newest)
            if leader == self.number:
                agreement = self._lead(lost)
            elif leader is not None:
                agreement = self._follow(leader, lost)
            else:
                agreement = None
            if agreement is not None:
                return agreement
            time.sleep(_LOOK_S)

    def _leader(self, states, known, newest):
        """The member to agree with; None where it is not known yet."""
        if self._has_state:
            alive = [n for n in self.numbers if n == self.number or states.get(n) == "silent" or states.get(n) in known]
            return alive[0] if states.get(alive[0]) != "silent" else None
        if newest is None:
            return None
        holders = [state["number"] for state in known if state["number"] in newest["numbers"]]
        return min(holders, default=None)

    def _look(self, numbers):
        return {number: self._ask_state(number) for number in sorted(numbers) if number != self.number}

    def _ask_state(self, number):
        """State of another member; "gone" where it certainly has ended, "silent" where that is not known, "unborn" before it listens."""
        planned = self._planned().get(number)
        if planned is None:
            return "gone"
        try:
            line = self._call(number, {"ask": "state"})
            try:
                state = line.read(_CONNECT_S)
            finally:
                line.close()
            return state if state.get("number") == number else "gone"
        except ConnectionRefusedError:
            return "gone" if number in self._met or number in self.numbers else "unborn"
        except (OSError, ValueError):
            return "silent"

    def _call(self, number, call):
        planned = self._planned()[number]
        connection = _socket()
        line = _Line(connection)
        try:
            connection.settimeout(_CONNECT_S)
            connection.connect((planned["host"], planned["port"]))
        except OSError:
            line.close()
            raise
        line.write(dict(call, key=self._plan["key"]))
        self._met.add(number)
        return line

    def _join_call(self, lost):
        return {
            "ask": "join",
            "number": self.number,
            "step": self._step,
            "has_state": self._has_state,
            "lost": lost,
            "stops": self.job.stop_wanted(),
            "node": self._node,
            "store_port": _free_port(),
            "plan": self._plan,
        }

    def _follow(self, leader, lost):
        self._send_away()
        try:
            line = self._call(leader, self._join_call(lost))
        except (OSError, KeyError):
            return None
        try:
            while True:
                try:
                    word = line.read(0.2)
                except socket.timeout:
                    if not self._has_state and self.job.stop_wanted():
                        return None
                    continue
                if word["say"] == "ready":
                    line.write({"say": "ready"})
                elif word["say"] == "commit":
                    self._take_plan(word["plan"])
                    return self._committed(word)
                else:
                    return None
        except (OSError, ValueError):
            return None
        finally:
            line.close()

    def _lead(self, lost):
        """Leads; None where another member knows of a later agreement, or where a caller was lost."""
        began = time.monotonic()
        own = self._join_call(lost)
        while True:
            self._read_plan()
            with self._called:
                calls = dict(self._calls)
            for call, _ in calls.values():
                self._take_plan(call["plan"])
            missing = [n for n in self.numbers if n != self.number and n not in calls]
            states = self._look(missing)
            if any(isinstance(s, dict) and s["has_state"] and s["agreement"] > self.agreement for s in states.values()):
                return None
            missing = [n for n in missing if states[n] != "gone"]
            if not missing and not self._awaits_founders(calls, began):
                break
            with self._called:
                self._called.wait(_LOOK_S)
        ready = {number: call for number, (call, line) in calls.items() if self._is_ready(number, line)}
        if any(n in calls and n not in ready for n in self.numbers):
            return None
        return self._decide(ready, own)

    def _awaits_founders(self, calls, began):
        """At the start of an attempt the founder waits a little for the others, so that all begin together."""
        if self.agreement > 0 or time.monotonic() - began > self._found_wait_s or self.job.stop_wanted():
            return False
        return any(number != self.number and number not in calls for number in self._planned())

    def _is_ready(self, number, line):
        try:
            line.write({"say": "ready"})
            return line.read(_ANSWER_S)["say"] == "ready"
        except (OSError, ValueError, KeyError):
            with self._called:
                if self._calls.get(number, (None, None))[1] is line:
                    del self._calls[number]
            line.close()
            return False

    def _decide(self, calls, own):
        calls = dict(calls)
        calls[self.number] = own
        old = [n for n in self.numbers if n in calls]
        new = sorted(n for n in calls if n not in self.numbers and self._may_join(n, calls[n]))
        stay = [n for n in old if not calls[n]["stops"] and not self._is_leaving(n)]
        stops = self._ends() or not stay and not new and any(calls[n]["stops"] for n in old)
        # Members that leave go when those that join hold the state, and no sooner.
        members = old if stops else sorted(old + new) if new or not stay else stay
        with_state = [n for n in members if calls[n]["has_state"]]
        source = max(with_state, key=lambda n: (calls[n]["step"], -n))
        step = calls[source]["step"]
        anew = members != self.numbers or self.agreement == 0 or any(calls[n]["lost"] for n in old)
        word = {
            "say": "commit",
            "outcome": STOP if stops else TRAIN,
            "number": self.agreement + 1 if anew else self.agreement,
            "numbers": members,
            "source": members.index(source),
            "transfer": any(not calls[n]["has_state"] or calls[n]["step"] != step for n in members),
            "step": step,
            "nodes": len({calls[n]["node"] for n in members}),
            "where": [self._planned()[members[0]]["host"], calls[members[0]]["store_port"]],
            "anew": anew,
            "plan": self._plan,
        }
        with self._called:
            lines = {number: self._calls.pop(number)[1] for number in list(self._calls) if number in calls}
        for number in sorted(lines):
            try:
                lines[number].write(word if number in members or number in old else {"say": "again"})
            except OSError:
                pass  # It is found gone when the group is formed.
            lines[number].close()
        return self._committed(word)

    def _committed(self, word):
        fields = {name: word[name] for name in Agreement._fields if name in word}
        if self.number not in word["numbers"]:
            return self._apart(STOP if word["outcome"] == STOP else LEAVE)
        agreement = Agreement(rank=word["numbers"].index(self.number), **dict(fields, where=tuple(word["where"])))
        if self._has_state:
            self._take(agreement, self._step)
        return agreement

    def _take(self, agreement, step):
        self.agreement, self.numbers, self._nodes = agreement.number, list(agreement.numbers), agreement.nodes
        self._step, self._has_state = step, True
        self.job.rank = agreement.rank

    def _apart(self, outcome):
        """Without the others. A member that was told to stop by itself gives way; one that the plan lets go leaves."""
        if outcome == LEAVE and not self._is_leaving(self.number):
            outcome = STOP
        self._send_away()
        self.job.rank = 1
        return Agreement(outcome, self.agreement, [], -1, 0, False, self._step, 0, ("", 0), False)

    def _send_away(self):
        """Tells those that called this member to look for the leader again."""
        with self._called:
            lines = [line for _, line in self._calls.values()]
            self._calls.clear()
        for line in lines:
            try:
                line.write({"say": "again"})
            except OSError:
                pass
            line.close()


class _Line:
    """A connection on which lines of JSON are exchanged."""

    def __init__(self, connection):
        self._connection = connection
        self._rest = b""

    def write(self, value):
        self._connection.settimeout(_ANSWER_S)
        self._connection.sendall(json.dumps(value).encode() + b"\n")

    def read(self, patience_s):
        self._connection.settimeout(patience_s)
        while b"\n" not in self._rest:
            more = self._connection.recv(65536)
            if not more:
                raise OSError("the member hung up")
            self._rest += more
            if len(self._rest) > _LONGEST_LINE:
                raise OSError("a line is too long")
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def close(self):
        self._connection.close()


def _rank(env):
    """Rank and number of the processes of a job that is not elastic."""
    world = int(env.get("WORLD_SIZE") or 1)
    if "RANK" in env:
        return int(env["RANK"]), world
    if int(env.get("NNODES") or 1) == world:
        return int(env.get("NODE_RANK") or 0), world
    raise SystemExit("this job has several accelerators on a node and one process: start it by torchrun; only node agents start an elastic program once for each accelerator")


def _socket():
    # Without the option a connection that has ended keeps its port from members that want to listen there, for a minute.
    new = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return new


def _free_port():
    with socket.socket() as free:
        free.bind(("", 0))
        return free.getsockname()[1]
