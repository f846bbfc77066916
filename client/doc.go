// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package client is the Go SDK: everything that a sandpit server can do, as
// methods. The command line uses nothing else.
//
// A sandbox is named by its ref: its id, or the key that it was created with.
// Errors of the server are returned as a *fault.Error with the same code, message, remedy and
// fields that the server set, so that
//
//	if fault.Is(err, fault.NotFound) { … }
//
// works on both sides of the wire. A command that fails is not an error: its exit code is in the
// result.
//
// Optional fields of requests are pointers; new makes one: new("python").
//
// The package knows the wire (api/v1) and nothing of how a server works.
package client
