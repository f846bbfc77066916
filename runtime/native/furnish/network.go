// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/spawn"
)

// Network makes network namespaces. It is safe for concurrent use.
type Network struct {
	tape     spawn.Tape
	made     spawn.Arg
	loopback ifreq
}

// ifreq is the kernel's struct ifreq with flags.
type ifreq struct {
	name  [unix.IFNAMSIZ]byte
	flags uint16
	_     [22]byte
}

// NewNetwork writes the tape.
func NewNetwork() *Network {
	n := &Network{loopback: ifreq{name: [unix.IFNAMSIZ]byte{'l', 'o'}, flags: unix.IFF_UP | unix.IFF_RUNNING}}
	p := &n.tape
	p.Do("make a network namespace", spawn.Never, unix.SYS_UNSHARE, spawn.Int(unix.CLONE_NEWNET))
	sock := p.Open("bring up loopback: socket", spawn.Never, unix.SYS_SOCKET, spawn.Int(unix.AF_INET), spawn.Int(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), spawn.Int(0))
	p.Do("bring up loopback", spawn.Never, unix.SYS_IOCTL, sock, spawn.Int(unix.SIOCSIFFLAGS), spawn.Pointer(unsafe.Pointer(&n.loopback)))
	n.made = p.Open("keep the network namespace", spawn.Never, unix.SYS_OPENAT, spawn.At(), p.Text("/proc/self/ns/net"), spawn.Int(unix.O_RDONLY|unix.O_CLOEXEC))
	return n
}

// Make makes a network namespace that belongs to the user namespace, with loopback
// up and nothing else. It blocks its thread for about a millisecond, the most of what
// a sandbox's namespaces take; therefore they are made ahead.
func (n *Network) Make(userns *os.File) (*os.File, error) {
	played, err := n.tape.PlayAs(userns)
	if err != nil {
		return nil, err
	}
	net := played.Take(n.made, "netns")
	played.Close()
	return net, nil
}
