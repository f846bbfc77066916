// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package tally

import "golang.org/x/sys/unix"

// From include/uapi/linux/bpf.h.
const (
	mapCreate         = 0
	progLoad          = 5
	rawTracepointOpen = 17

	mapTypeHash  = 1
	mapTypeArray = 2
	mapMappable  = 1 << 10

	progTypeTracepoint    = 5
	progTypeRawTracepoint = 17

	helperLookup = 1
	helperUpdate = 2
	helperDelete = 3
	helperSelf   = 14 // the process's number << 32 | the thread's
)

// Operations that the programs are made of, on 64 bits where nothing else is said.
const (
	opMove     = 0xbf // dst = src
	opSet      = 0xb7 // dst = value
	opAdd      = 0x0f // dst += src
	opAddValue = 0x07 // dst += value
	opAnd      = 0x57 // dst &= value
	opShiftL   = 0x67 // dst <<= value
	opShiftR   = 0x77 // dst >>= value
	opLoad     = 0x79 // dst = *(u64 *)(src + offset)
	opLoad32   = 0x61 // dst = *(u32 *)(src + offset)
	opStore32  = 0x63 // *(u32 *)(dst + offset) = src
	opPut32    = 0x62 // *(u32 *)(dst + offset) = value
	opCount    = 0xdb // *(u64 *)(dst + offset) += src, at once for all processors
	opLoadMap  = 0x18 // dst = map, two instructions long
	opIfEqual  = 0x15 // if dst == value, jump
	opIfNot    = 0x55 // if dst != value, jump
	opIfSame   = 0x1d // if dst == src, jump
	opIfOver   = 0x25 // if dst > value, jump
	opIfBits   = 0x45 // if dst & value != 0, jump
	opJump     = 0x05
	opCall     = 0x85 // r0 = helper(r1, …), which spoils r1 to r5
	opReturn   = 0x95 // r0
	pseudoFD   = 1    // the source of an opLoadMap whose value is a descriptor
	stack      = 10   // the register that points above a program's 512 bytes of stack
)

// insn is the kernel's struct bpf_insn.
type insn struct {
	op        uint8
	registers uint8 // source in the high half, destination in the low
	offset    int16
	value     int32
}

// assembler writes a program with jumps to labels.
type assembler struct {
	code   []insn
	jumps  map[int]string
	labels map[string]int
}

func newAssembler() *assembler {
	return &assembler{jumps: map[int]string{}, labels: map[string]int{}}
}

func (a *assembler) do(op uint8, dst, src uint8, offset int16, value int32) {
	a.code = append(a.code, insn{op: op, registers: src<<4 | dst, offset: offset, value: value})
}

func (a *assembler) jump(op uint8, dst, src uint8, value int32, label string) {
	a.jumps[len(a.code)] = label
	a.do(op, dst, src, 0, value)
}

func (a *assembler) label(name string) { a.labels[name] = len(a.code) }

// done ends the program at the label "out".
func (a *assembler) done() []insn {
	a.label("out")
	a.do(opSet, 0, 0, 0, 0)
	a.do(opReturn, 0, 0, 0, 0)
	for at, label := range a.jumps {
		a.code[at].offset = int16(a.labels[label] - at - 1)
	}
	return a.code
}

// A thread's entry in the map of threads, which is kept by its number.
const (
	entryBorn = 0 // u32: the process that made it, until its first system call shows whether it is a new one; then 0
	entryRole = 4 // u32
	entrySize = 8
)

// Where the programs keep things on their stack.
const (
	atKey   = -4
	atEntry = -16
)

// self leaves the current thread's number at atKey and its process's in r7.
func (a *assembler) self() {
	a.do(opCall, 0, 0, 0, helperSelf)
	a.do(opMove, 7, 0, 0, 0)
	a.do(opShiftR, 7, 0, 0, 32)
	a.do(opStore32, stack, 0, atKey, 0)
}

// find calls a helper on a map and the key at atKey.
func (a *assembler) find(helper int32, table int) {
	a.do(opLoadMap, 1, pseudoFD, 0, int32(table))
	a.do(0, 0, 0, 0, 0)
	a.do(opMove, 2, stack, 0, 0)
	a.do(opAddValue, 2, 0, 0, atKey)
	a.do(opCall, 0, 0, 0, helper)
}

// entering runs before each system call, and counts it for the role of its thread.
func entering(threads, counts int, root int32) []insn {
	a := newAssembler()
	a.do(opMove, 6, 1, 0, 0)
	a.self()
	a.find(helperLookup, threads)
	a.jump(opIfEqual, 0, 0, 0, "old")
	a.do(opLoad32, 8, 0, entryRole, 0)
	a.do(opLoad32, 1, 0, entryBorn, 0)
	a.jump(opIfEqual, 1, 0, 0, "count")
	a.do(opPut32, 0, 0, entryBorn, 0)
	a.jump(opIfSame, 1, 7, 0, "count") // a thread: it has the role of its process
	a.jump(opIfBits, 8, 0, 1, "process")
	a.jump(opIfEqual, 8, 0, int32(Below), "process")
	a.do(opAddValue, 8, 0, 0, 1)
	a.do(opStore32, 0, 8, entryRole, 0)
	a.label("process")
	a.do(opMove, 9, 8, 0, 0)
	a.do(opShiftL, 9, 0, 0, widthBits)
	a.do(opAddValue, 9, 0, 0, births)
	a.do(opStore32, stack, 9, atKey, 0)
	a.find(helperLookup, counts)
	a.jump(opIfEqual, 0, 0, 0, "out")
	a.do(opSet, 1, 0, 0, 1)
	a.do(opCount, 0, 1, 0, 0)
	a.jump(opJump, 0, 0, 0, "count")
	a.label("old") // it is older than we are
	a.jump(opIfNot, 7, 0, root, "out")
	a.do(opSet, 8, 0, 0, int32(Root))
	a.label("count")
	a.do(opLoad, 1, 6, 8, 0) // the second of the tracepoint's arguments: the number
	a.jump(opIfOver, 1, 0, births-1, "strange")
	a.jump(opJump, 0, 0, 0, "add")
	a.label("strange")
	a.do(opSet, 1, 0, 0, width-1)
	a.label("add")
	a.do(opShiftL, 8, 0, 0, widthBits)
	a.do(opAdd, 8, 1, 0, 0)
	a.do(opStore32, stack, 8, atKey, 0)
	a.find(helperLookup, counts)
	a.jump(opIfEqual, 0, 0, 0, "out")
	a.do(opSet, 1, 0, 0, 1)
	a.do(opCount, 0, 1, 0, 0)
	return a.done()
}

// forking runs in a thread that made another, whose number the tracepoint has at an
// offset, before that one runs.
func forking(threads int, root int32, child int16) []insn {
	a := newAssembler()
	a.do(opMove, 6, 1, 0, 0)
	a.self()
	a.find(helperLookup, threads)
	a.do(opSet, 8, 0, 0, int32(Root))
	a.jump(opIfEqual, 0, 0, 0, "old")
	a.do(opLoad32, 8, 0, entryRole, 0)
	a.jump(opJump, 0, 0, 0, "put")
	a.label("old")
	a.jump(opIfNot, 7, 0, root, "out")
	a.label("put")
	a.do(opStore32, stack, 7, atEntry+entryBorn, 0)
	a.do(opStore32, stack, 8, atEntry+entryRole, 0)
	a.do(opLoad32, 1, 6, child, 0)
	a.do(opStore32, stack, 1, atKey, 0)
	a.do(opMove, 3, stack, 0, 0)
	a.do(opAddValue, 3, 0, 0, atEntry)
	a.do(opSet, 4, 0, 0, 0)
	a.find(helperUpdate, threads)
	return a.done()
}

// executing runs in a thread that became another program.
func executing(threads int) []insn {
	a := newAssembler()
	a.self()
	a.find(helperLookup, threads)
	a.jump(opIfEqual, 0, 0, 0, "out")
	a.do(opLoad32, 8, 0, entryRole, 0)
	a.do(opMove, 1, 8, 0, 0)
	a.do(opAnd, 1, 0, 0, 1)
	a.jump(opIfEqual, 1, 0, 0, "out")
	a.do(opAddValue, 8, 0, 0, 1)
	a.do(opStore32, 0, 8, entryRole, 0)
	return a.done()
}

// exiting runs in a thread that ends.
func exiting(threads int) []insn {
	a := newAssembler()
	a.self()
	a.find(helperDelete, threads)
	return a.done()
}

// bpf makes descriptors that are closed on exec, as all of bpf(2) are.
func bpf(command uintptr, attr []byte) (int, error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_BPF, command, address(attr), uintptr(len(attr)))
		switch errno {
		case 0:
			return int(r), nil
		case unix.EAGAIN, unix.EINTR: // a signal came while it looked the program over
			continue
		}
		return -1, errno
	}
}
