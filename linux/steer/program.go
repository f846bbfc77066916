// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package steer

import (
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Offsets in struct bpf_sk_lookup, which the program is given.
const (
	ctxFamily   = 8
	ctxProtocol = 12
	ctxLocalIP4 = 40
	ctxLocalIP6 = 44
)

// Slots of the socket map.
const (
	slotTCP = 0
	slotUDP = 1
)

// What the program answers.
const skDrop, skPass = 0, 1

// steering is the program: what is for the loopback passes, all else goes to the sockets in the
// map, and nowhere where the map is empty.
func steering(sockets int) asm.Instructions {
	field := func(dst asm.Register, offset int16) asm.Instruction {
		return asm.LoadMem(dst, asm.R6, offset, asm.Word)
	}
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		field(asm.R2, ctxFamily),
		asm.JNE.Imm(asm.R2, unix.AF_INET, "six"),
		field(asm.R3, ctxLocalIP4), // in network order: the first byte is the lowest
		asm.And.Imm(asm.R3, 0xff),
		asm.JEq.Imm(asm.R3, 127, "pass"),
		asm.Ja.Label("steer"),
	}
	for i := range int16(3) {
		load := field(asm.R3, ctxLocalIP6+4*i)
		if i == 0 {
			load = load.WithSymbol("six")
		}
		code = append(code, load, asm.JNE.Imm(asm.R3, 0, "steer"))
	}
	return append(code,
		field(asm.R3, ctxLocalIP6+12),
		asm.JEq.Imm(asm.R3, 1<<24, "pass"), // ::1

		field(asm.R4, ctxProtocol).WithSymbol("steer"),
		asm.Mov.Imm(asm.R5, slotTCP),
		asm.JEq.Imm(asm.R4, unix.IPPROTO_TCP, "look"),
		asm.Mov.Imm(asm.R5, slotUDP),
		asm.StoreMem(asm.R10, -4, asm.R5, asm.Word).WithSymbol("look"),
		asm.LoadMapPtr(asm.R1, sockets),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "drop"),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Mov.Imm(asm.R3, 0),
		asm.FnSkAssign.Call(),
		asm.Mov.Reg(asm.R8, asm.R0),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.FnSkRelease.Call(),
		asm.JNE.Imm(asm.R8, 0, "drop"),
		asm.Mov.Imm(asm.R0, skPass).WithSymbol("pass"),
		asm.Return(),
		asm.Mov.Imm(asm.R0, skDrop).WithSymbol("drop"),
		asm.Return(),
	)
}

// attach attaches the program to a network namespace, with the two sockets. It works as
// long as what it returns is open.
func attach(netns, tcp, udp int) (io.Closer, error) {
	failed := func(err error, what string) (io.Closer, error) {
		return nil, fault.Wrap(fault.Unsupported, err, "traffic cannot be steered: %s (%s)", what, err).
			WithRemedy("the kernel needs CONFIG_BPF_SYSCALL, and the server the rights to load programs (root has them)")
	}
	sockets, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.SockMap, KeySize: 4, ValueSize: 8, MaxEntries: 2})
	if err != nil {
		return failed(err, "the kernel makes no map of sockets")
	}
	defer sockets.Close()
	for slot, socket := range [...]int{slotTCP: tcp, slotUDP: udp} {
		if err := sockets.Put(uint32(slot), uint64(socket)); err != nil {
			return failed(err, "a socket cannot be steered to")
		}
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup, Instructions: steering(sockets.FD()), License: "Apache"})
	if err != nil {
		return failed(err, "the kernel refuses the program")
	}
	defer program.Close()
	attached, err := link.AttachNetNs(netns, program)
	if err != nil {
		return failed(err, "the program cannot be attached to the namespace")
	}
	return attached, nil
}
