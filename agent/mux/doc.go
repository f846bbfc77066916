// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mux carries many calls of package wire over one byte stream, each as a connection of its own.
//
// It is yamux, with what it leaves open decided: only the server opens streams; each has a
// window of 256 KiB in each direction, which is all that one can make the other side keep; who does not
// read holds up nobody else; an agent that is frozen is no broken stream, so nothing is pinged. What
// an agent may not send is refused before yamux sees it: it lives among hostile code.
//
// Where the carrier takes nothing for 10 seconds, as that of an agent which is frozen in the middle of an upload, the
// writes that wait have an error, and the calls that made them are over. Reads wait on.
//
// A stream that has moved a MiB yields to those that have moved less, while they are in use: it sends its pieces a
// millisecond apart.
//
// A stream that its reader closed takes a window more at most, and is reset a moment later.
package mux
