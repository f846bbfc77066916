// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package wire is the language between the server and the agent inside a
// sandbox: frames, messages, and the format of a process's log. It is data and
// its encoding; it knows nothing of processes, files or sandboxes themselves.
//
// # Connections
//
// One call is one connection over any reliable byte stream. Nothing is
// multiplexed: the end of the connection is the end of the call, never of what
// the call began (except for a terminal that was asked to hang up).
//
// # Frames
//
//	[1 byte type][3 bytes length, big endian][length bytes of payload]
//
// Payloads are JSON, of at most [MaxJSON] bytes, or raw bytes, of at most
// [MaxData]; [Type.Limit] says which bound holds. A longer frame is an error, and so
// is a connection that ends within a frame. Types from 0x80 on may be skipped by
// who does not know them; any other unknown type ends the call with the code
// "unsupported".
//
// # A call
//
//	client                                server
//	Hello [magic "sbpt"][version]
//	Call  {"op":"start", …}
//	Data … End   (what the op sends)      Reply {…}  or  Failure {"code":…,"message":…}
//	                                      Data …, Item … or log frames
//	                                      Done {…}  or  Failure
//
// Hello and Call go out together: a call costs one round trip. A server that
// does not speak the version answers Failure "unsupported", and so does one
// that does not know the op: agents live as long as their sandboxes and meet
// newer servers. Fields that the reader does not know are ignored on both sides, and a
// field that is missing has its zero value, which always means "as before it existed".
// [Version] grows only when that is not enough.
//
// What each op sends and gets is said in message.go, at its constant.
//
// # Logs
//
// A process's log file is a sequence of the same frames, in the types LogStart to
// LogSeal, so that following a process is copying its log to the connection. Their
// payload begins with 20 bytes:
//
//	[4 bytes CRC-32C of the frame's header and of the rest][8 bytes seq][8 bytes Unix time in ns]
//
// LogStart comes first and holds a [Record] as JSON. LogStdout and LogStderr hold
// output bytes; their seq counts 1, 2, 3 … over both streams. LogExit holds the
// [Result] as JSON, and the seq of the last output before it. Output may come
// after it, from children that the command left behind. LogSeal ends a file to
// which nothing will be added, and holds the offset of LogExit (8 bytes), so that a
// record is found without reading the output. A file without LogSeal belongs to
// a running process, or to one whose agent died; what follows the last whole
// frame of it is no part of the log.
//
// # Names
//
// File names are bytes, JSON strings are Unicode: see [EscapeName].
package wire
