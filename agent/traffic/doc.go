// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package traffic carries what a sandbox sends to the world from its agent to the server, where the server
// enters no network namespace: an Engine elsewhere, or one that shows it no processes, or a pod.
//
// # The parts
//
// Inside, all that is sent to other addresses than the loopback's comes to two sockets, see package
// linux/tproxy. Who makes them has CAP_NET_ADMIN, which the agent has not: a [Step], a program in a container of
// its own that shares the network namespace and nothing else, and is over before the traffic begins. It gives them to
// the [Agent] over an abstract unix socket of the namespace. By the kernel's word for who connects there the
// agent tells the step from programs of the sandbox, which are in its own namespace of processes. A pod has an interface
// beside the loopback, over which the agent is reached: there the step's rules let nothing out but what answers the agent's callers.
//
// The [Server] is the other end. It dials the agent, over whatever carries its calls, with the key that both
// know; package handshake says how. That connection is a session: connections of the sandbox and datagrams come
// over it, and nothing has to be able to leave the sandbox but that. When it ends, all that it carried is reset, the
// sockets take nothing more, and connections are refused until the next one. There is one session at a time, and the
// newest has the traffic.
//
// # The protocol
//
// After the handshake both sides send frames:
//
//	[1 byte kind][3 bytes length][4 bytes number][length bytes]
//
// in network order; frame.go says what each kind carries. The server says how many connections the agent may
// open, which it does with the destination of each, and numbers them 1, 2, 3 and so on. Each has a window in each
// direction: what may be on its way that the receiver's program has not taken. It grows for a connection
// that is read quickly, out of a pool that all connections of the session share, so that neither side keeps more than
// the pool and one small window for each connection, and who does not read holds up nobody else.
//
// What a frame may not say ends the session: the server trusts an agent with nothing but the sandbox's
// own traffic, and decides by the destination that it was told what may leave.
package traffic
