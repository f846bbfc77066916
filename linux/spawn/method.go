// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

// Method is how children are cloned. Both methods make the same children.
type Method int

const (
	// Fastest shares the server's memory with the children, which takes assembler. On a
	// processor for which that is not written it is Portable.
	Fastest Method = iota
	// Portable copies the server's memory for each child, as fork(2) does. It needs nothing
	// that package syscall does not export, and takes longer the more memory the server has.
	Portable
)

// copies reports whether children have a copy of the server's memory.
func (m Method) copies() bool { return m == Portable || !shares }
