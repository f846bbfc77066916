// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "encoding/binary"

// InstructionSize is the size of one instruction in bytes.
const InstructionSize = 8

// maxInstructions is the kernel's BPF_MAXINSNS.
const maxInstructions = 4096

// Offsets in the kernel's struct seccomp_data, and codes of classic BPF.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16

	codeLoad = 0x20 // A = data[k]
	codeAnd  = 0x54 // A &= k
	codeJump = 0x05
	codeJEQ  = 0x15
	codeJGT  = 0x25
	codeJGE  = 0x35
	codeJSET = 0x45
	codeRet  = 0x06

	retKillProcess = 0x80000000
	retUserNotif   = 0x7fc00000
	retAllow       = 0x7fff0000

	eperm  = 1
	enosys = 38
)

func retErrno(errno uint32) uint32 { return 0x00050000 | errno&0xffff }

type instruction struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// label is an emitted instruction, counted from the end of the program.
type label int

// assembler builds a program from its end to its start. Classic BPF jumps only
// forward, so every target exists by the time that a jump to it is emitted.
type assembler struct {
	reversed []instruction
}

func (a *assembler) emit(i instruction) label {
	a.reversed = append(a.reversed, i)
	return label(len(a.reversed) - 1)
}

// ret gives an instruction that returns the value.
func (a *assembler) ret(value uint32) label {
	for i, in := range a.reversed {
		if in.code == codeRet && in.k == value {
			return label(i)
		}
	}
	return a.emit(instruction{code: codeRet, k: value})
}

// near gives an instruction with the effect of target that a conditional jump,
// whose offset has eight bits, still reaches after spare further instructions.
func (a *assembler) near(target label, spare int) label {
	if len(a.reversed)+spare-int(target)-1 <= 255 {
		return target
	}
	if in := a.reversed[target]; in.code == codeRet {
		return a.emit(in)
	}
	return a.emit(instruction{code: codeJump, k: uint32(len(a.reversed) - int(target) - 1)})
}

// branch emits a conditional jump. Nothing falls through to what it may emit
// on the way, since all code before it ends in a jump or a return.
func (a *assembler) branch(code uint16, k uint32, yes, no label) label {
	if yes == no {
		return yes
	}
	yes, no = a.near(yes, 1), a.near(no, 0)
	here := len(a.reversed)
	return a.emit(instruction{
		code: code, k: k,
		jt: uint8(here - int(yes) - 1), jf: uint8(here - int(no) - 1),
	})
}

// test emits "load the word at offset, keep the bits of mask, branch".
func (a *assembler) test(offset, mask uint32, code uint16, k uint32, yes, no label) label {
	if yes == no {
		return yes // before a load is skipped on the way: nothing is loaded here
	}
	if mask != ^uint32(0) {
		if code == codeJEQ && k == 0 {
			code, k, mask, yes, no = codeJSET, mask, ^uint32(0), no, yes
		}
	} else {
		// The branch may skip a load of the word that it has just looked at.
		y, n := a.skipLoad(yes, offset), a.skipLoad(no, offset)
		if y == n {
			return max(yes, no) // the one of the two that loads
		}
		yes, no = y, n
	}
	a.branch(code, k, yes, no)
	if mask != ^uint32(0) {
		a.emit(instruction{code: codeAnd, k: mask})
	}
	return a.emit(instruction{code: codeLoad, k: offset})
}

func (a *assembler) skipLoad(target label, offset uint32) label {
	if in := a.reversed[target]; in.code == codeLoad && in.k == offset {
		return target - 1
	}
	return target
}

func (a *assembler) bytes() []byte {
	out := make([]byte, 0, len(a.reversed)*InstructionSize)
	for i := len(a.reversed) - 1; i >= 0; i-- {
		in := a.reversed[i]
		out = binary.LittleEndian.AppendUint16(out, in.code)
		out = append(out, in.jt, in.jf)
		out = binary.LittleEndian.AppendUint32(out, in.k)
	}
	return out
}
