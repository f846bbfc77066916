// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package tproxy brings what the network namespace of this process sends to two sockets in it, as package
// steer does, where nobody enters the namespace from outside: a process in it has CAP_NET_ADMIN for a moment.
//
// The namespace has no other interface than the loopback; or it has one, over which the process is reached, and over which the
// rules let nothing be sent but answers.
//
// All addresses are local to the namespace, so all that is sent comes back in on its loopback. There rules of
// nf_tables (TPROXY) give each new TCP connection to one listening socket and each datagram to one UDP socket,
// whatever address and port they are for; only what is for the loopback's own addresses and for groups goes
// the usual way. Nothing is translated, and no connection is tracked.
//
// Routes and rules stay when the process ends that set them. So do the sockets, with whoever it gave them to: making them
// transparent takes CAP_NET_ADMIN, binding and using them does not. Where none is bound, connections are refused.
package tproxy
