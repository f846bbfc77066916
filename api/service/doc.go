// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package service is what coats ask of the server: one small interface for each noun. The
// interfaces belong to the coats, which share them so that none declares them again; what
// implements them is wired in daemon, and need not be one value.
//
// # Terms
//
// A ref is the id or the key of a sandbox in the caller's project. A caller is who asks, as the
// guard found it.
//
// # What holds for every method
//
// A method that has a caller checks its rights first: without the scope that it needs it is fault.Denied,
// and what belongs to another project is fault.NotFound, as what does not exist is. Values are
// checked where the method is: a coat checks only what its wire alone can get wrong. Errors are
// of package fault, and those about a field name it as the request's type does.
//
// A method that changes something is on record before it does it. One whose ctx ends returns;
// what it has begun goes on or is undone, as its verb says in package engine. All methods may be
// called concurrently.
package service
