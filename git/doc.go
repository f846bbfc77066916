// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package git runs git's commands inside of sandboxes, above the engine: it checks what a caller asks
// for, keeps credentials where they belong, and reads what git says. It knows no coat.
//
// # Credentials
//
// A user and a password are told to the repository's own server by a helper that git asks, for that
// scheme and host alone; a redirect to another host gets none. They are variables of the command, so they
// are in no argument, no file, no configuration of the repository and no record, and the agent masks them
// in what git prints. A program of the same user that runs inside meanwhile can read them there: what
// nothing inside may ever see is a secret that is bound to hosts.
//
// # Addresses
//
// An address is http, https, ssh, git, what ssh takes as HOST:PATH, or a path inside the sandbox. Helpers
// of other transports (ext::) and options are refused here, and git itself is told to use no other
// transport, whatever its configuration or a redirect says.
//
// What git prints comes from inside and from a remote server: it is shown as data, in printable
// characters, and bounded.
package git
