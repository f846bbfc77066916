// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
)

type op uint8

const (
	opEQ op = iota
	opNE
	opGT
	opGE
	opLT
	opLE
)

// Masks that select what is compared of an argument.
const (
	allBits = ^uint64(0)
	// lowWord is for arguments that the kernel takes as a 32-bit int: it drops
	// the upper half, so a comparison that looks at it can be talked past
	// (socket(2) with family 1<<32|AF_ALG is AF_ALG to the kernel).
	lowWord = uint64(0xffffffff)
)

// condition holds when (argument & mask) op value does, unsigned. Ordering
// operators are compiled for allBits and lowWord only.
type condition struct {
	arg   uint8
	op    op
	mask  uint64
	value uint64
}

// clause holds when all of its conditions do.
type clause []condition

// rule decides one system call: pass when there are no clauses or any of them
// holds, else what otherwise says, or fail where that is nil. pass and fail are
// values of the kernel's SECCOMP_RET_*.
type rule struct {
	clauses    []clause
	pass, fail uint32
	otherwise  *rule
}

// conditionOf translates a condition of Docker's list. It compares all 64 bits,
// as libseccomp does.
func conditionOf(a specs.LinuxSeccompArg) (condition, error) {
	if a.Index > 5 {
		return condition{}, fmt.Errorf("argument index %d: a system call has arguments 0 to 5", a.Index)
	}
	c := condition{arg: uint8(a.Index), mask: allBits, value: a.Value}
	switch a.Op {
	case specs.OpEqualTo:
		c.op = opEQ
	case specs.OpNotEqual:
		c.op = opNE
	case specs.OpGreaterThan:
		c.op = opGT
	case specs.OpGreaterEqual:
		c.op = opGE
	case specs.OpLessThan:
		c.op = opLT
	case specs.OpLessEqual:
		c.op = opLE
	case specs.OpMaskedEqual:
		// The specification keeps the mask in Value and the datum in ValueTwo.
		c.op, c.mask, c.value = opEQ, a.Value, a.ValueTwo
	default:
		return condition{}, fmt.Errorf("unknown operator %q", a.Op)
	}
	return c, nil
}
