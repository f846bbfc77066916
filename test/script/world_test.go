// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"
)

// world is a machine of a test's own, as far as a server can tell: a network
// namespace with addresses, and a mount namespace whose files say who answers for names.
// Nothing in it reaches the network that the test runs on.
type world struct {
	work chan func() // done on the thread that lives there
}

// Addresses of the world. They are not of the internet, so that a policy has to allow
// them, and a packet that got out would get nowhere.
var (
	shelf     = netip.MustParseAddr("198.51.100.1")    // where the registries are
	house     = netip.MustParseAddr("198.51.100.2")    // where the server's own API is
	stranger  = netip.MustParseAddr("198.51.100.3")    // where nobody has any business
	metadata  = netip.MustParseAddr("169.254.169.254") // where a cloud tells a machine its credentials
	loopback  = netip.MustParseAddr("127.0.0.1")
	addresses = []netip.Addr{shelf, house, stranger, metadata} // beside loopback
)

// newWorld makes a world that knows names, and whose every other name does not exist.
// It ends with the test.
func newWorld(t *testing.T, names map[string]netip.Addr) *world {
	t.Helper()
	w := &world{work: make(chan func())}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"resolv.conf": "nameserver 127.0.0.1\n", "hosts": "127.0.0.1 localhost\n", "nsswitch.conf": "hosts: files dns\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ready, gone := make(chan error), make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ready <- enterWorld(dir)
		for f := range w.work {
			f()
		}
	}()
	t.Cleanup(func() { close(w.work); <-gone })
	if err := <-ready; err != nil {
		t.Fatalf("make a world of the test's own: %v", err)
	}
	w.answerNames(t, names)
	return w
}

// in does f in the world: sockets that it opens and programs that it starts are of there.
func (w *world) in(f func()) {
	done := make(chan struct{})
	w.work <- func() { defer close(done); f() }
	<-done
}

// run runs a command of the server's in the world, and gives all that it said.
func (w *world) run(s *server, args ...string) (string, error) {
	cmd := s.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var err error
	w.in(func() { err = cmd.Start() })
	if err == nil {
		err = cmd.Wait()
	}
	return strings.TrimSpace(out.String()), err
}

// listen opens a port in the world.
func (w *world) listen(t *testing.T, at netip.Addr, port uint16) net.Listener {
	t.Helper()
	var l net.Listener
	var err error
	w.in(func() { l, err = net.Listen("tcp", netip.AddrPortFrom(at, port).String()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// listenPacket is listen for datagrams.
func (w *world) listenPacket(t *testing.T, at netip.Addr, port uint16) net.PacketConn {
	t.Helper()
	var c net.PacketConn
	var err error
	w.in(func() { c, err = net.ListenPacket("udp", netip.AddrPortFrom(at, port).String()) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// enterWorld takes the calling thread into namespaces of its own.
func enterWorld(dir string) error {
	if err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	for _, name := range []string{"resolv.conf", "hosts", "nsswitch.conf"} {
		// A link, as resolv.conf often is one, would lead the mount elsewhere.
		real, err := filepath.EvalSymlinks(filepath.Join("/etc", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // what holds then is what the file would say
		}
		if err != nil {
			return err
		}
		if err := unix.Mount(filepath.Join(dir, name), real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount over %s: %w", real, err)
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	set := func(name string, call uint, with func(*unix.Ifreq) error) error {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = with(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, call, r)
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", name, err)
		}
		return nil
	}
	up := func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }
	if err := set("lo", unix.SIOCSIFFLAGS, up); err != nil {
		return err
	}
	whole := []byte{255, 255, 255, 255}
	for i, a := range addresses {
		name := fmt.Sprint("lo:", i+1)
		err := set(name, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(a.AsSlice()) })
		if err == nil { // else all of the range would be this host's
			err = set(name, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(whole) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answerNames is the resolver of the world.
func (w *world) answerNames(t *testing.T, names map[string]netip.Addr) {
	t.Helper()
	c := w.listenPacket(t, loopback, 53)
	var done sync.WaitGroup
	done.Go(func() {
		b := make([]byte, 4096)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			if a := answerName(b[:n], names); a != nil {
				_, _ = c.WriteTo(a, from)
			}
		}
	})
	t.Cleanup(func() { _ = c.Close(); done.Wait() })
}

func answerName(question []byte, names map[string]netip.Addr) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Header = dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: true, RecursionAvailable: true}
	m.Additionals = nil
	a, known := names[strings.TrimSuffix(strings.ToLower(q.Name.String()), ".")]
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 60},
			Body:   &dnsmessage.AResource{A: a.As4()},
		}}
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

// host returns what the world's network consists of: interfaces, addresses, routes,
// rules, the firewall and what is forwarded.
func (w *world) host(t *testing.T) []string {
	t.Helper()
	var out []string
	var err error
	w.in(func() { out, err = network() })
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// network is host for the network namespace of the calling thread.
func network() ([]string, error) {
	var out []string
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		out = append(out, fmt.Sprint("interface ", l.Index, " ", l.Name, " ", l.Flags))
	}
	for title, kind := range map[string]int{
		"address": unix.RTM_GETADDR, "route": unix.RTM_GETROUTE, "rule": unix.RTM_GETRULE,
	} {
		b, err := syscall.NetlinkRIB(kind, unix.AF_UNSPEC)
		if err != nil {
			return nil, fmt.Errorf("list each %s: %w", title, err)
		}
		messages, err := syscall.ParseNetlinkMessage(b)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.Header.Type != unix.NLMSG_DONE {
				out = append(out, fmt.Sprintf("%s %x", title, withoutUse(kind, m.Data)))
			}
		}
	}
	tables, err := firewall()
	if err != nil {
		return nil, err
	}
	out = append(out, tables...)
	for _, name := range []string{"net/ip_tables_names", "net/ip6_tables_names", "sys/net/ipv4/ip_forward", "sys/net/ipv6/conf/all/forwarding"} {
		if strings.HasPrefix(name, "net/") {
			name = "thread-self/" + name
		}
		b, err := os.ReadFile(filepath.Join("/proc", name))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the kernel may lack it
			return nil, err
		}
		out = append(out, fmt.Sprintf("%s %q", name, b))
	}
	slices.Sort(out)
	return out, nil
}

// withoutUse takes out of an entry how it was used, and how long it has yet.
func withoutUse(kind int, b []byte) string {
	size, uses := unix.SizeofRtMsg, []uint16{unix.RTA_CACHEINFO}
	if kind == unix.RTM_GETADDR {
		size, uses = unix.SizeofIfAddrmsg, []uint16{unix.IFA_CACHEINFO}
	}
	var out bytes.Buffer
	out.Write(b[:size])
	for b = b[size:]; len(b) >= unix.SizeofRtAttr; {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofRtAttr || n > len(b) {
			break
		}
		if !slices.Contains(uses, binary.NativeEndian.Uint16(b[2:])) {
			out.Write(b[:n])
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return out.String()
}

// firewall lists the tables of nftables, without which there is no rule.
func firewall() ([]string, error) {
	const getTable = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETTABLE
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil // such a kernel has none
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	ask := binary.NativeEndian.AppendUint32(nil, unix.SizeofNlMsghdr+4)
	ask = binary.NativeEndian.AppendUint16(ask, getTable)
	ask = binary.NativeEndian.AppendUint16(ask, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	ask = append(ask, make([]byte, 8+4)...)
	if err := unix.Sendto(s, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var out []string
	b := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(s, b, 0)
		if err != nil {
			return nil, err
		}
		messages, err := syscall.ParseNetlinkMessage(b[:n])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR: // an error: no nftables in this kernel
				return out, nil
			}
			out = append(out, fmt.Sprintf("table %x", m.Data))
		}
	}
}

// difference tells what is in one list and not in the other.
func difference(was, is []string) string {
	count := make(map[string]int)
	for _, x := range was {
		count[x]--
	}
	for _, x := range is {
		count[x]++
	}
	var out []string
	for _, x := range slices.Sorted(maps.Keys(count)) {
		if n := count[x]; n != 0 {
			out = append(out, fmt.Sprintf("%+d %s", n, x))
		}
	}
	return strings.Join(out, "\n")
}
