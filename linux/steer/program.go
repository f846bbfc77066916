// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package steer

import (
	"encoding/binary"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// From include/uapi/linux/bpf.h; the commands and the fields of union bpf_attr that
// they read.
const (
	mapCreate  = 0
	mapUpdate  = 2
	progLoad   = 5
	linkCreate = 28

	mapTypeSockmap   = 15
	progTypeSkLookup = 30
	attachSkLookup   = 36

	helperMapLookup = 1
	helperSkRelease = 86
	helperSkAssign  = 124

	skDrop, skPass = 0, 1
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

// insn is the kernel's struct bpf_insn.
type insn struct {
	op        uint8
	registers uint8 // source in the high half, destination in the low
	offset    int16
	value     int32
}

// Operations that the program is made of.
const (
	opMove    = 0xbf // dst = src
	opSet     = 0xb7 // dst = value
	opAdd     = 0x07 // dst += value
	opAnd     = 0x57 // dst &= value
	opLoad    = 0x61 // dst = *(u32 *)(src + offset)
	opStore   = 0x63 // *(u32 *)(dst + offset) = src
	opLoadMap = 0x18 // dst = map, two instructions long
	opIfEqual = 0x15 // if dst == value, jump
	opIfNot   = 0x55 // if dst != value, jump
	opJump    = 0x05
	opCall    = 0x85 // r0 = helper(r1, …)
	opReturn  = 0x95 // r0
	pseudoFD  = 1    // the source of an opLoadMap whose value is a descriptor
)

// assembler writes a program with jumps to labels.
type assembler struct {
	code   []insn
	jumps  map[int]string
	labels map[string]int
}

func (a *assembler) do(op uint8, dst, src uint8, offset int16, value int32) {
	a.code = append(a.code, insn{op: op, registers: src<<4 | dst, offset: offset, value: value})
}

func (a *assembler) jump(op uint8, dst uint8, value int32, label string) {
	a.jumps[len(a.code)] = label
	a.do(op, dst, 0, 0, value)
}

func (a *assembler) label(name string) { a.labels[name] = len(a.code) }

func (a *assembler) done() []insn {
	for at, label := range a.jumps {
		a.code[at].offset = int16(a.labels[label] - at - 1)
	}
	return a.code
}

// steering is the program: what is for the loopback passes, all else goes to the sockets in the
// map, and to nobody where there is none.
func steering(sockets int) []insn {
	a := assembler{jumps: map[int]string{}, labels: map[string]int{}}
	a.do(opMove, 6, 1, 0, 0)
	a.do(opLoad, 2, 6, ctxFamily, 0)
	a.jump(opIfNot, 2, unix.AF_INET, "six")
	a.do(opLoad, 3, 6, ctxLocalIP4, 0) // in network order: the first byte is the lowest
	a.do(opAnd, 3, 0, 0, 0xff)
	a.jump(opIfEqual, 3, 127, "pass")
	a.jump(opJump, 0, 0, "steer")
	a.label("six")
	for i := range int16(3) {
		a.do(opLoad, 3, 6, ctxLocalIP6+4*i, 0)
		a.jump(opIfNot, 3, 0, "steer")
	}
	a.do(opLoad, 3, 6, ctxLocalIP6+12, 0)
	a.jump(opIfEqual, 3, 1<<24, "pass") // ::1

	a.label("steer")
	a.do(opLoad, 4, 6, ctxProtocol, 0)
	a.do(opSet, 5, 0, 0, slotTCP)
	a.jump(opIfEqual, 4, unix.IPPROTO_TCP, "look")
	a.do(opSet, 5, 0, 0, slotUDP)
	a.label("look")
	a.do(opStore, 10, 5, -4, 0)
	a.do(opLoadMap, 1, pseudoFD, 0, int32(sockets))
	a.do(0, 0, 0, 0, 0)
	a.do(opMove, 2, 10, 0, 0)
	a.do(opAdd, 2, 0, 0, -4)
	a.do(opCall, 0, 0, 0, helperMapLookup)
	a.jump(opIfEqual, 0, 0, "drop")
	a.do(opMove, 7, 0, 0, 0)
	a.do(opMove, 1, 6, 0, 0)
	a.do(opMove, 2, 7, 0, 0)
	a.do(opSet, 3, 0, 0, 0)
	a.do(opCall, 0, 0, 0, helperSkAssign)
	a.do(opMove, 8, 0, 0, 0)
	a.do(opMove, 1, 7, 0, 0)
	a.do(opCall, 0, 0, 0, helperSkRelease)
	a.jump(opIfNot, 8, 0, "drop")
	a.label("pass")
	a.do(opSet, 0, 0, 0, skPass)
	a.do(opReturn, 0, 0, 0, 0)
	a.label("drop")
	a.do(opSet, 0, 0, 0, skDrop)
	a.do(opReturn, 0, 0, 0, 0)
	return a.done()
}

// attach attaches the program to a network namespace, with the two sockets. It works as
// long as the descriptor that it gives is open.
func attach(netns, tcp, udp int) (*os.File, error) {
	failed := func(err error, what string) (*os.File, error) {
		return nil, fault.Wrap(fault.Unsupported, err, "traffic cannot be steered: %s (%s)", what, err).
			WithRemedy("the kernel needs CONFIG_BPF_SYSCALL, and the server the rights to load programs (root has them)")
	}
	sockets, err := newMap()
	if err != nil {
		return failed(err, "the kernel makes no map of sockets")
	}
	defer unix.Close(sockets)
	for slot, socket := range [...]int{slotTCP: tcp, slotUDP: udp} {
		if err := put(sockets, uint32(slot), uint64(socket)); err != nil {
			return failed(err, "a socket cannot be steered to")
		}
	}
	program, err := load(steering(sockets))
	if err != nil {
		return failed(err, "the kernel refuses the program")
	}
	defer unix.Close(program)
	link, err := link(program, netns)
	if err != nil {
		return failed(err, "the program cannot be attached to the namespace")
	}
	return os.NewFile(uintptr(link), "steering"), nil
}

var order = binary.NativeEndian

func newMap() (int, error) {
	var attr [72]byte
	order.PutUint32(attr[0:], mapTypeSockmap)
	order.PutUint32(attr[4:], 4)  // bytes of a key
	order.PutUint32(attr[8:], 8)  // bytes of a value
	order.PutUint32(attr[12:], 2) // entries
	return bpf(mapCreate, attr[:])
}

func put(sockets int, key uint32, value uint64) error {
	var attr [32]byte
	order.PutUint32(attr[0:], uint32(sockets))
	order.PutUint64(attr[8:], uint64(uintptr(unsafe.Pointer(&key))))
	order.PutUint64(attr[16:], uint64(uintptr(unsafe.Pointer(&value))))
	_, err := bpf(mapUpdate, attr[:])
	runtime.KeepAlive(&key)
	runtime.KeepAlive(&value)
	return err
}

func load(code []insn) (int, error) {
	license := [...]byte{'A', 'p', 'a', 'c', 'h', 'e', 0}
	var attr [120]byte
	order.PutUint32(attr[0:], progTypeSkLookup)
	order.PutUint32(attr[4:], uint32(len(code)))
	order.PutUint64(attr[8:], uint64(uintptr(unsafe.Pointer(&code[0]))))
	order.PutUint64(attr[16:], uint64(uintptr(unsafe.Pointer(&license[0]))))
	order.PutUint32(attr[68:], attachSkLookup)
	fd, err := bpf(progLoad, attr[:])
	runtime.KeepAlive(code)
	runtime.KeepAlive(&license)
	return fd, err
}

func link(program, netns int) (int, error) {
	var attr [32]byte
	order.PutUint32(attr[0:], uint32(program))
	order.PutUint32(attr[4:], uint32(netns))
	order.PutUint32(attr[8:], attachSkLookup)
	return bpf(linkCreate, attr[:])
}

// bpf makes descriptors that are closed on exec, as all of bpf(2) are.
func bpf(command uintptr, attr []byte) (int, error) {
	for {
		r, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
		switch errno {
		case 0:
			return int(r), nil
		case unix.EAGAIN, unix.EINTR: // a signal came while it looked the program over
			continue
		}
		return -1, errno
	}
}
