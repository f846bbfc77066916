// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostNetwork is what could be made on a host for its sandboxes' networks: interfaces,
// addresses, routes, rules of routing and of firewalls, and whether it forwards. Sorted.
func hostNetwork(t *testing.T) (out []string) {
	t.Helper()
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		addrs, err := l.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("interface %s %v", l.Name, addrs))
	}
	for what, kind := range map[string]int{"route": unix.RTM_GETROUTE, "rule": unix.RTM_GETRULE} {
		for _, m := range dump(t, unix.NETLINK_ROUTE, kind, make([]byte, unix.SizeofRtMsg)) {
			out = append(out, what+" "+steady(m))
		}
	}
	// The rules of a firewall have counters in them: their number says enough.
	const nftables, table, chain, rule = 10 << 8, 1, 4, 7
	for what, kind := range map[string]int{"table": table, "chain": chain, "rule": rule} {
		out = append(out, fmt.Sprintf("firewall: of each %s %d", what, len(dump(t, unix.NETLINK_NETFILTER, nftables|kind, make([]byte, 4)))))
	}
	for _, path := range []string{
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding", "/proc/net/ip_tables_names", "/proc/net/ip6_tables_names",
	} {
		b, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		out = append(out, path+" "+strings.TrimSpace(string(b)))
	}
	slices.Sort(out)
	return out
}

// steady writes a route or a rule without what time and traffic change in it.
func steady(m []byte) string {
	const cacheInfo, head = unix.RTA_CACHEINFO, unix.SizeofRtMsg
	var b strings.Builder
	if len(m) < head {
		return ""
	}
	fmt.Fprintf(&b, "%x", m[:head])
	for rest := m[head:]; len(rest) >= 4; {
		n, kind := int(binary.NativeEndian.Uint16(rest)), binary.NativeEndian.Uint16(rest[2:])
		if n < 4 || n > len(rest) {
			break
		}
		if kind != cacheInfo {
			fmt.Fprintf(&b, " %d:%x", kind, rest[4:n])
		}
		rest = rest[min(len(rest), (n+3)&^3):]
	}
	return b.String()
}

// dump asks the kernel for all things of a kind; none where it does not know them.
func dump(t *testing.T, protocol, kind int, head []byte) (out [][]byte) {
	t.Helper()
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	m := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(head))
	m = append(m, head...)
	binary.NativeEndian.PutUint32(m, uint32(len(m)))
	binary.NativeEndian.PutUint16(m[4:], uint16(kind))
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	if err := unix.Sendto(s, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 1<<18)
	for {
		n, _, err := unix.Recvfrom(s, buf, 0)
		if err != nil {
			t.Fatal(err)
		}
		messages, err := syscall.ParseNetlinkMessage(bytes.Clone(buf[:n]))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_DONE, unix.NLMSG_ERROR:
				return out
			default:
				out = append(out, m.Data)
			}
		}
	}
}

var programID = regexp.MustCompile(`(?m)^prog_id:\s*([0-9]+)$`)

// programs are the BPF programs that a process has attached to something.
func programs(t *testing.T, pid int) (ids []uint32) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(filepath.Join(dir, "fd", fd.Name())); !strings.Contains(to, "bpf") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name()))
		if err != nil {
			continue // closed since
		}
		if m := programID.FindSubmatch(b); m != nil {
			id, err := strconv.ParseUint(string(m[1]), 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, uint32(id))
		}
	}
	return ids
}

// loaded reports whether the kernel still has a program.
func loaded(t *testing.T, id uint32) bool {
	t.Helper()
	const progGetFdByID = 13
	attr := [3]uint32{id}
	fd, _, errno := unix.Syscall(unix.SYS_BPF, progGetFdByID, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	switch errno {
	case 0:
		_ = unix.Close(int(fd))
		return true
	case unix.ENOENT:
		return false
	}
	t.Fatalf("ask for the BPF program %d: %v", id, errno)
	return false
}
