// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package engineapi is a client of the HTTP API of Docker's Engine, which Podman's service has,
// too: as much of it as a runtime needs. It knows no sandbox.
//
// What answers is not trusted to be well: every call is bounded in time, and every answer in
// size. Its errors are of package fault, and say by their code what can be done:
//
//   - Unavailable: nothing listens there, what listens is no Engine, or it does not answer
//   - Denied: this user may not connect, or the Engine refuses it
//   - Unsupported: the Engine's version of the API is too old, or too new
//   - NotFound, Conflict, Invalid, Full: what the Engine says of a thing
package engineapi
