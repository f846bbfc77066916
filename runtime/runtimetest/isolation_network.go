// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// sockets are kinds of sockets that a sandbox has no use for.
var sockets = []attempt{
	both("open sockets of other families", eperm, `ordinary = {1, 2, 10, 16}
result = each(lambda f: call('socket', f, 2, 0), [f for f in range(46) if f not in ordinary])`),
	both("open pairs of sockets of other families", eperm, `result = each(lambda f: call('socketpair', f, 2, 0, ctypes.create_string_buffer(8)), [2, 10, 16, 17, 30, 38, 40])`),
	both("open a raw packet socket", eperm, `result = each(lambda k: call('socket', 17, k, 0x0300), [2, 3])`),
	both("open raw sockets", eperm, `result = each(lambda a: socket.socket(*a), [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_RAW, 255),
    (socket.AF_INET6, socket.SOCK_RAW, 58), (socket.AF_INET, socket.SOCK_RAW, 17)])`),
	both("talk to the hypervisor", eperm, `result = each(lambda k: call('socket', 40, k, 0), [1, 2])`),
	both("open netlink sockets of other protocols", eprotonosupport, `ordinary = {0, 4, 15}
result = each(lambda a: call('socket', 16, *a), [(k, p) for k in (2, 3) for p in [*range(40), 1 << 31, 1 << 32 | 16] if p not in ordinary])`),
	both("open netlink sockets for routes, lists of sockets and events", done, `result = each(lambda p: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, p), [0, 4, 15])`),
	both("use the kernel's ciphers", eperm, `call('socket', 38, 5, 0)`),
	both("mark packets", eperm, `socket.socket().setsockopt(socket.SOL_SOCKET, 36, 1)`),
	both("take buffers past the host's bound", eperm, `s = socket.socket()
result = each(lambda o: s.setsockopt(socket.SOL_SOCKET, o, 1 << 28), [32, 33])`),
	both("bind addresses that the sandbox has not", "REFUSED EADDRNOTAVAIL", `result = each(lambda a: socket.socket().bind((a, 0)), ['192.0.2.1', '169.254.169.254'] + [a for a in FACTS['addresses'] if ':' not in a])`),
	both("send as another process", eperm, `a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
result = each(lambda c: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack('iII', *c))]), [(1, os.getuid(), os.getgid())])`),
}

// networkCalls are ways to any network but one's own loopback.
var networkCalls = []attempt{
	both("find another interface", "lo", `result = ', '.join(n for _, n in socket.if_nameindex())`),
	both("connect to the host's addresses", "REFUSED ENETUNREACH", `result = each(lambda a: socket.create_connection((a, FACTS['tcp6_port']), 5), [a for a in FACTS['addresses'] if ':' not in a] + ['192.0.2.1'])`),
	both("connect to public and private addresses", "REFUSED ENETUNREACH", `result = each(lambda a: socket.create_connection((a, 80), 5),
    ['1.1.1.1', '8.8.8.8', '93.184.216.34', '10.0.0.1', '10.255.255.1', '172.16.0.1', '172.17.0.1', '192.168.0.1', '192.168.1.1', '100.64.0.1', '198.18.0.1'])`),
	both("connect to the metadata address", "REFUSED ENETUNREACH", `result = each(lambda a: socket.create_connection(a, 5), [('169.254.169.254', 80), ('169.254.170.2', 80), ('100.100.100.200', 80)])`),
	both("connect over IPv6", "REFUSED ENETUNREACH or REFUSED EADDRNOTAVAIL or REFUSED EAFNOSUPPORT", `def f(a):
    s = socket.socket(socket.AF_INET6); s.settimeout(5); s.connect((a, 80))
result = each(f, ['2606:4700:4700::1111', 'fd00:ec2::254', '2001:db8::1'])`),
	both("send datagrams", "REFUSED ENETUNREACH", `result = each(lambda a: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', a), [('1.1.1.1', 53), ('192.0.2.1', 53), ('224.0.0.1', 53), ('169.254.169.254', 53)])`),
	both("broadcast", "REFUSED ENETUNREACH", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.sendto(b'x', ('255.255.255.255', 67))`),
	both("connect to a server on the host's loopback", "REFUSED ECONNREFUSED", `result = each(lambda a: socket.create_connection(a, 5), [('127.0.0.1', FACTS['tcp_port']), ('127.0.0.1', FACTS['tcp6_port']),
    ('127.1.2.3', FACTS['tcp6_port']), ('0.0.0.0', FACTS['tcp6_port']), ('127.0.0.1', 8080), ('127.0.0.1', 22)])`),
	both("find the host's servers in the lists of sockets", "NONE", `found = []
for n in ('tcp', 'tcp6', 'udp', 'udp6', 'raw', 'packet', 'netlink'):
    if os.path.exists('/proc/net/' + n):
        for l in read('/proc/net/' + n).decode().splitlines()[1:]:
            if ':%04X ' % FACTS['tcp_port'] in l or ':%04X ' % FACTS['tcp6_port'] in l: found.append(l)
result = ', '.join(found) or 'NONE'`),
	both("connect to an abstract socket of the host", "REFUSED ECONNREFUSED", `socket.socket(socket.AF_UNIX).connect('\0' + FACTS['abstract'])`),
	both("connect to a socket file of the host", enoent, `socket.socket(socket.AF_UNIX).connect(FACTS['socket'])`),
	both("attach the host's shared memory", enoent, `call('shmget', FACTS['shm_key'], 0, 0)`),
	both("find the host's shared memory in the lists", "NONE", `found = [n for n in ('shm', 'msg', 'sem') if len(read('/proc/sysvipc/' + n).decode().splitlines()) > 1]
result = ', '.join(found) or 'NONE'`),
	both("add an address", eperm, `netlink(20, 5 | 0x400, struct.pack('BBBBI', 2, 24, 0, 0, 1) + struct.pack('HH4s', 8, 2, bytes([10, 0, 0, 2])))`),
	both("remove loopback's address", eperm, `netlink(21, 5, struct.pack('BBBBI', 2, 8, 0, 0, 1) + struct.pack('HH4s', 8, 2, bytes([127, 0, 0, 1])))`),
	both("add a route", eperm, `netlink(24, 5 | 0x400, struct.pack('BBBBBBBBI', 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack('HHI', 8, 4, 1))`),
	both("add an interface", eperm, `kind = struct.pack('HH', 9, 1) + b'dummy\0\0\0'
netlink(16, 5 | 0x600, struct.pack('BBHiII', 0, 0, 0, 0, 0, 0) + struct.pack('HH', 4 + len(kind), 18) + kind)`),
	both("take loopback down", eperm, `netlink(16, 5, struct.pack('BBHiII', 0, 0, 0, 1, 0, 1))`),
	both("take loopback down by the old call", eperm, `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 0))`),
	both("add an address by the old call", eperm, `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8916, struct.pack('16sHH4s8x', b'lo', 2, 0, bytes([10, 0, 0, 2])))`),
	both("change the firewall", eprotonosupport, `netlink(16, 5, struct.pack('BBH', 0, 0, 10 << 8 & 0xffff), 12)`),
	both("change the firewall by the old calls", eperm+" or REFUSED ENOPROTOOPT", `s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
result = each(lambda o: s.setsockopt(socket.IPPROTO_IP, o, b'\0' * 128), [64, 65])`),
	both("change encryption policies", eprotonosupport, `netlink(16, 5, b'\0' * 224, 6)`),
	both("change the host's audit rules", eprotonosupport, `netlink(1001, 5, b'\0' * 40, 9)`),
	both("listen to the host's device events", "SILENT", `s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)
try: s.bind((0, 1))
except PermissionError: pass
s.settimeout(0.2)
try: result = str(s.recv(4096))
except (TimeoutError, BlockingIOError): result = 'SILENT'`),
}

// terminals are ways to type for others.
var terminals = []attempt{
	both("type into a terminal", eperm, tty+`result = each(lambda c: call('ioctl', child, c, ctypes.create_string_buffer(b'x')), [0x5412, 0x541c])`),
	both("type into a terminal by a command that differs in its upper half", eperm, tty+`result = each(lambda c: call('ioctl', child, c, ctypes.create_string_buffer(b'x')), [0x1_0000_5412, -1 << 32 | 0x5412])`),
	both("load a line discipline", eperm, tty+`result = each(lambda n: call('ioctl', child, 0x5423, ctypes.create_string_buffer(struct.pack('i', n))), range(0, 30, 3))`),
	both("take the console", eperm+" or REFUSED ENOTTY", tty+`call('ioctl', child, 0x541d, 0)`),
	both("see terminals of others", "[]", `result = str([n for n in os.listdir('/dev/pts') if n != 'ptmx'])`),
}

const tty = `import pty
parent, child = pty.openpty()
assert call('ioctl', child, 0x5413, ctypes.create_string_buffer(8)) == 0
`
