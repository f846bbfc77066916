// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package steer brings what a network namespace sends to the rest of the world to
// sockets of ours, and to nothing else.
//
// # How
//
// The namespace has its loopback and no other interface. Two routes make every
// address of IPv4 and IPv6 local to it, so all that is sent comes back in on
// the loopback. There a small BPF program (sk_lookup), which is attached to the
// namespace, hands each new TCP connection and each datagram to one listening
// socket and one UDP socket, whatever address and port it is for; only what is
// for 127.0.0.0/8 and ::1 goes the usual way. A connection's local address is then
// the address that the sandbox meant, a datagram's comes with it. Nothing is
// translated, so there is no table of connections to fill; the host has no interface, no
// route, no forwarding and no firewall rule of it. It takes 0.4 ms.
//
// # What holds
//
// The sandbox has no way around: there is no interface to leave by, and what
// runs inside has no right to change routes or to take the program away, since it
// belongs to the host. Other protocols than TCP and UDP find no socket. When the server ends,
// the kernel detaches the program with its last descriptor, and connections are
// refused until the next server steers again: it fails closed.
//
// The sockets are bound to port 53, since answers to questions of names must come
// from there. A sandbox that is steered cannot serve names of its own on all
// addresses. Its programs ask 127.0.0.1 when no file names a server, so nothing
// has to be written into the sandbox.
//
// The package knows nothing of policies, sandboxes or names.
package steer
