import array, os, socket, struct, subprocess, sys, threading, time

SOCKET = "/dev/sandpit/sudo.sock"


def request(argv, user="", cwd=None, env=(), action=0, counts=None):
    cwd = os.getcwd() if cwd is None else cwd
    body = b"".join(s.encode() + b"\0" for s in [user, cwd, *argv, *env])
    counts = counts or (len(argv), 0, len(env), len(body))
    return b"sud1" + bytes([action, 0, 0, 0]) + struct.pack("=HH", 0, 0) + struct.pack("=IIII", *counts) + body


def dial():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(30)
    s.connect(SOCKET)
    return s


def send(s, data, fds):
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def streams():
    null = os.open("/dev/null", os.O_RDWR)
    return [null, null, null, os.open(".", os.O_RDONLY)]


def hear(s):
    b = b""
    try:
        while True:
            d = s.recv(4096)
            if not d:
                break
            b += d
    except OSError as e:
        b += str(e).encode()
    return b


def tell(b):
    sys.stdout.write(b.decode(errors="replace"))


attack = sys.argv[1]
fds = streams()
if attack == "descriptors":
    n = int(sys.argv[2])
    s = dial()
    send(s, request(["true"]), [fds[0]] * (n - 1) + fds[3:] if n else [])
    tell(hear(s))
elif attack == "twice":
    s = dial()
    r = request(["true"])
    send(s, r[:10], fds)
    send(s, r[10:], fds)
    tell(hear(s))
elif attack == "later":
    s = dial()
    send(s, request(["sleep", "98765"]), fds)
    assert s.recv(5)[:1] == b"S"
    send(s, b"G" + struct.pack("=I", 1)[:2], fds)
    got = hear(s)
    print("killed" if got[:1] == b"K" and got[1] == 9 else got)
elif attack == "garbage":
    s = dial()
    send(s, os.urandom(4) + b"\xff" * 200, fds)
    tell(hear(s))
elif attack == "huge":
    s = dial()
    send(s, request([], counts=(1, 0, 0, 0xFFFFFFF0)), fds)
    tell(hear(s))
elif attack == "environment":
    # 200,000 bytes of variables, past the program that would not send them, again and again.
    said = set()
    for _ in range(200):
        s = dial()
        try:
            send(s, request(["id"], env=["V%d=%s" % (i, "x" * 990) for i in range(200)]), fds)
        except OSError:
            pass  # it was refused before all of it had come
        said.add(hear(s))
        s.close()
    for one in said:
        tell(one)
elif attack == "lengths":
    s = dial()
    send(s, request(["a", "b"], counts=(900, 0, 0, len(b"\0" + os.getcwd().encode() + b"\0a\0b\0"))), fds)
    tell(hear(s))
elif attack == "action":
    s = dial()
    send(s, request(["true"], action=77), fds)
    tell(hear(s))
elif attack == "slow":
    s = dial()
    send(s, request(["true"])[:20], fds)
    tell(hear(s))
elif attack == "orphan":
    # The caller ends at once, and its connection is in the hands of a child.
    s = dial()
    caller = os.fork()
    if caller == 0:
        mine = dial()
        if os.fork() == 0:
            time.sleep(0.2)
            send(mine, request(["sh", "-c", "touch /tmp/orphan; sleep 98765"]), fds)
            sys.stdout.write(hear(mine).decode(errors="replace"))
            os._exit(0)
        os._exit(0)
    os.waitpid(caller, 0)
    time.sleep(1)
    left = subprocess.run(["pgrep", "-fx", "sleep 98765"], capture_output=True, text=True).stdout
    print("gone" if not left and not os.path.exists("/tmp/orphan") else "left " + left)
elif attack == "elsewhere":
    # The path says another directory than the descriptor.
    s = dial()
    send(s, request(["true"], cwd="/root"), fds)
    tell(hear(s))
elif attack == "thousand":
    # Each is answered: it runs, or is told why not.
    answered = 0
    for _ in range(10):
        all = []
        for _ in range(100):
            s = dial()
            send(s, request(["true"]), fds)
            all.append(s)
        for s in all:
            got = hear(s)
            if (got[:1] == b"S" and got[5:6] in (b"E", b"K")) or got[:1] == b"R":
                answered += 1
            else:
                print(got)
            s.close()
    print("answered", answered)
elif attack == "hurry":
    # Who asks does not wait for the answer, and leaves descriptors under way.
    for _ in range(300):
        s = dial()
        send(s, request(["true"]), fds)
        s.close()
    for _ in range(100):
        dial().close()
    print("closed")
