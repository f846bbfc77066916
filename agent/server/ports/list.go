// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/call"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// socket is a line of /proc/net/tcp or its like, of a socket that waits.
type socket struct {
	wire.Port
	addr  netip.Addr
	uid   int
	inode uint64
}

// table is one of the kernel's lists of sockets.
type table struct {
	file, protocol string
	state          uint64 // of those that wait
}

func streamTables() []table {
	const listening = 10 // TCP_LISTEN
	return []table{{"/proc/net/tcp", "tcp", listening}, {"/proc/net/tcp6", "tcp", listening}}
}

func tables() []table {
	const closed = 7 // TCP_CLOSE, of a datagram socket that is bound and not connected
	return append(streamTables(), table{"/proc/net/udp", "udp", closed}, table{"/proc/net/udp6", "udp", closed})
}

// Bounds of looking: whoever is inside can open as many sockets and files as
// its limits allow, and the agent's time and memory are not theirs.
const (
	maxSocketBytes = 1 << 20  // of each list of sockets: 7000 lines of IPv4; what listens comes first
	maxSocketLine  = 64 << 10 // bytes, and of what is read at once
	maxOpenFiles   = 50_000   // of all processes, looked at for their sockets
	lookTurn       = 250 * time.Millisecond
)

// look waits for the right to read the lists of sockets, which one call at a time
// has, and gives what ends it. It is net.ErrClosed when the caller has gone
// meanwhile, noticed each lookTurn.
func (s *Service) look(ctx context.Context, c *call.Conn) (done func(), err error) {
	for {
		turn := time.NewTimer(lookTurn)
		select {
		case s.looking <- struct{}{}:
			turn.Stop()
			done = func() { <-s.looking }
		case <-ctx.Done():
			turn.Stop()
			return nil, ctx.Err()
		case <-turn.C:
		}
		switch gone := hungUp(c.Conn); {
		case gone && done != nil:
			done()
			return nil, net.ErrClosed
		case gone:
			return nil, net.ErrClosed
		case done != nil:
			return done, nil
		}
	}
}

// List tells which sockets wait for others, and whose they are.
func (s *Service) List(ctx context.Context, c *call.Conn) error {
	found, truncated, err := s.ports(ctx, c)
	if err != nil {
		return err
	}
	answer := wire.Ports{Ports: make([]wire.Port, 0, len(found)), Truncated: truncated}
	for i := range found {
		answer.Ports = append(answer.Ports, found[i].Port)
	}
	return c.Answer(answer)
}

// ports lists the first sockets that wait, and whose they are.
func (s *Service) ports(ctx context.Context, c *call.Conn) (found []socket, truncated bool, err error) {
	done, err := s.look(ctx, c)
	if err != nil {
		return nil, false, err
	}
	defer done()
	all, truncated, err := waiting()
	if err != nil {
		return nil, false, fault.Wrap(fault.Internal, err, "the sandbox's sockets cannot be listed")
	}
	if len(all) > wire.MaxPorts {
		all, truncated = slices.Clone(all[:wire.MaxPorts]), true // the rest is let go
	}
	if s.own(all) {
		truncated = true
	}
	return all, truncated, nil
}

// waiting lists the sockets of this network namespace that wait for others, by
// port. What the kernel has not (IPv6, for example) has no sockets.
func waiting() (all []socket, truncated bool, err error) {
	for _, t := range tables() {
		cut, err := t.read(func(line []byte) bool {
			if sock, ok := t.parse(line); ok {
				all = append(all, sock)
			}
			return true
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, false, err
		}
		truncated = truncated || cut
	}
	slices.SortFunc(all, func(a, b socket) int {
		return cmp.Or(cmp.Compare(a.Port.Port, b.Port.Port), strings.Compare(a.Protocol, b.Protocol), a.addr.Compare(b.addr))
	})
	return all, truncated, nil
}

// listeners returns the addresses, other than those tried, at which tables of TCP
// say that a port is listened on, maxAddresses at most.
func listeners(lists []table, port int, tried []netip.Addr) (found []netip.Addr, err error) {
	mark := fmt.Appendf(nil, ":%04X ", port) // most lines are of other ports, and no work is done for them
	for _, t := range lists {
		_, err := t.read(func(line []byte) bool {
			if !bytes.Contains(line, mark) {
				return true
			}
			sock, ok := t.parse(line)
			if ok && sock.Port.Port == port && !sock.addr.IsUnspecified() && !slices.Contains(tried, sock.addr) && !slices.Contains(found, sock.addr) {
				found = append(found, sock.addr)
			}
			return len(found) < maxAddresses
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(found) >= maxAddresses {
			break
		}
	}
	return found, nil
}

// read hands the lines of one list to visit, until it wants no more.
func (t table) read(visit func(line []byte) bool) (truncated bool, err error) {
	f, err := os.Open(t.file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	left := maxSocketBytes
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, maxSocketLine), maxSocketLine)
	for lines.Scan() {
		if left -= len(lines.Bytes()) + 1; left < 0 {
			return true, nil
		}
		if !visit(lines.Bytes()) {
			return false, nil
		}
	}
	return false, lines.Err()
}

// parse reads a line: its number, local and remote address, state, two pairs,
// retransmits, uid, timeout, inode. ok: it is a socket that waits.
func (t table) parse(line []byte) (sock socket, ok bool) {
	f := bytes.Fields(line)
	if len(f) < 10 {
		return sock, false
	}
	if state, err := strconv.ParseUint(string(f[3]), 16, 8); err != nil || state != t.state {
		return sock, false
	}
	addr, port, ok := parseAddress(string(f[1]))
	if !ok || port == 0 {
		return sock, false
	}
	uid, err := strconv.ParseUint(string(f[7]), 10, 32)
	inode, err2 := strconv.ParseUint(string(f[9]), 10, 64)
	if err != nil || err2 != nil {
		return sock, false
	}
	return socket{
		Port: wire.Port{Port: int(port), Protocol: t.protocol, Address: addr.String()},
		addr: addr, uid: int(uid), inode: inode,
	}, true
}

// parseAddress reads "0100007F:1F90": words of 32 bits in the machine's own
// order, then a port.
func parseAddress(s string) (netip.Addr, uint16, bool) {
	host, port, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.Addr{}, 0, false
	}
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, 0, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, ok := netip.AddrFromSlice(b)
	return addr.Unmap(), uint16(n), ok
}

// own fills in whose the sockets are. truncated: there were too many open files
// to look at all of them, and some sockets have no process.
func (s *Service) own(found []socket) (truncated bool) {
	missing := make(map[uint64][]int) // by inode: indices; several sockets never share one, but nothing here may rely on it
	for i := range found {
		found[i].User = s.userName(found[i].uid)
		if found[i].inode != 0 { // one that was closed a moment ago
			missing[found[i].inode] = append(missing[found[i].inode], i)
		}
	}
	pids := numbers("/proc")
	slices.Sort(pids)
	left := maxOpenFiles
	for _, pid := range pids {
		if len(missing) == 0 {
			return false
		}
		if pid == os.Getpid() {
			continue
		}
		dir := "/proc/" + strconv.Itoa(pid)
		name := ""
		inodes, denied := sockets(dir+"/fd", &left)
		if denied { // without CAP_SYS_PTRACE only a process's own user reads its links
			s.user().Do(func() { inodes, _ = sockets(dir+"/fd", &left) })
		}
		for _, inode := range inodes {
			for _, i := range missing[inode] {
				if name == "" {
					name = commandName(dir)
				}
				found[i].PID, found[i].Command = pid, name
			}
			delete(missing, inode)
		}
		if left <= 0 {
			return len(missing) > 0
		}
	}
	return false
}

func (s *Service) userName(uid int) string {
	switch user := s.user().Identity(); uid {
	case user.UID:
		return user.Name
	case 0:
		return "root"
	}
	return strconv.Itoa(uid)
}

// commandName is the name that a process goes by, which it may change to any 15
// bytes.
func commandName(dir string) string {
	b, err := os.ReadFile(dir + "/comm")
	if err != nil {
		return ""
	}
	return message.Clip(strings.ToValidUTF8(string(bytes.TrimSuffix(b, []byte("\n"))), "?"), wire.MaxPortText)
}

// numbers lists the entries of a directory of the kernel's that are numbers.
func numbers(dir string) []int {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what ends meanwhile is left out
	all := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// sockets lists the inodes of the sockets that a process has open, and takes
// what it looks at off left. denied: the thread may not look at any.
func sockets(dir string, left *int) (all []uint64, denied bool) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Is(err, unix.EACCES)
	}
	d := os.NewFile(uintptr(fd), dir)
	defer d.Close()
	var link [64]byte
	for *left > 0 {
		names, err := d.Readdirnames(min(*left, 512))
		for _, name := range names {
			*left--
			n, err := unix.Readlinkat(fd, name, link[:])
			if errors.Is(err, unix.EACCES) {
				return nil, true
			}
			if err != nil {
				continue
			}
			text, ok := strings.CutPrefix(string(link[:n]), "socket:[")
			if !ok {
				continue
			}
			if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64); err == nil {
				all = append(all, inode)
			}
		}
		if err != nil {
			break
		}
	}
	return all, false
}
