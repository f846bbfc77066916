// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package ports answers the calls on ports: it lists the sockets of the sandbox that wait for others, and connects
// callers with programs inside, by the sandbox's own addresses alone. It lives among untrusted code, as the agent
// does: whoever is inside can open as many sockets and files as its limits allow, and what is looked at is bounded.
//
// It must not know who a caller is, and no command.
package ports
