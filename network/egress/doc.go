// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package egress is the only way out of a sandbox with a network: a [Gate] answers
// its questions for names, makes its connections for it, and refuses the rest.
//
// # Names
//
// The gate answers for names that the policy allows, and keeps what it answered:
// an address may be connected to when it is the answer to an allowed name (it is
// pinned), or when the policy lists it. Answers that are not of the public internet
// are left out, so a name cannot be made to stand for a neighbour. Records that
// would hide a connection's name (HTTPS, SVCB) are answered with nothing.
//
// # Connections
//
// Of a connection that is allowed for its name's sake the first bytes are looked at:
// the server name of TLS and the Host of HTTP must be allowed as well. Where the
// address was not pinned (by another server's run, say), that name is asked for by the
// gate, and counts if the address is among the answers. A protocol without names in it
// goes through to pinned addresses; TLS without a server name does not, nor what a
// lenient server could take for TLS or HTTP in another way than the gate does. A first
// line that could yet be a request's is kept back until it ends.
//
// What is refused is told in the program's own protocol where that has words: a
// name that does not exist with the reason beside it, an HTTP 403 with a text, a TLS alert,
// else a reset. It is in the [Journal].
//
// # Bound secrets
//
// The TLS of a connection to a host that a secret is bound to ([Keys]) ends here, under
// a certificate of an [Authority] that the sandbox trusts. Each request must name that host; it
// is written anew, with the header that takes the secret set, and goes to the address that the
// program connected to, over TLS that is verified as the host's own. What comes back
// has the values masked. Connections whose keys change are cut.
//
// # What it cannot see
//
// Inside other TLS, and in requests after the first of an HTTP connection, a program may
// name another host of the same server. What is carried in the names of allowed
// domains reaches their servers.
package egress
