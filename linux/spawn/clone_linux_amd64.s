// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

#define SYS_clone3 435
#define SYS_pause 34
#define SYS_exit 60
#define SYS_getppid 110
#define SYS_prctl 157
#define PR_SET_PDEATHSIG 1
#define SIGKILL 9

// func cloneBeside(args *cloneArgs, size, entry uintptr, p unsafe.Pointer) (r, errno uintptr)
//
// The child begins on the stack that args give it, runs the Go function at entry with p, and
// never returns; the parent goes on beside it. The function is called as the compiler itself
// would, its argument in AX with room to spill it: the wrapper that assembly gets by a
// function's name would tell the race detector of it, as of the parent's.
TEXT ·cloneBeside(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ	args+0(FP), DI
	MOVQ	size+8(FP), SI
	MOVQ	entry+16(FP), R12
	MOVQ	p+24(FP), R13
	MOVQ	$SYS_clone3, AX
	SYSCALL
	CMPQ	AX, $0
	JEQ	born
	CMPQ	AX, $0xfffffffffffff001
	JCS	ok
	NEGQ	AX
	MOVQ	$0, r+32(FP)
	MOVQ	AX, errno+40(FP)
	RET
ok:
	MOVQ	AX, r+32(FP)
	MOVQ	$0, errno+40(FP)
	RET
born:
	SUBQ	$64, SP
	XORPS	X15, X15
	MOVQ	(TLS), R14
	MOVQ	R13, AX
	CALL	R12
	INT	$3

// func cloneParked(args *cloneArgs, size, self uintptr) (r, errno uintptr)
//
// The child never returns: it sleeps until it is killed, by us or, since it holds
// a copy of all our descriptors and so of our locks, by the kernel when the
// thread that cloned it ends. It runs beside the parent and shares its stack, so
// it must not touch memory, and it does not. self is our pid.
TEXT ·cloneParked(SB), NOSPLIT|NOFRAME, $0-40
	MOVQ	args+0(FP), DI
	MOVQ	size+8(FP), SI
	MOVQ	self+16(FP), R13
	MOVQ	$SYS_clone3, AX
	SYSCALL
	CMPQ	AX, $0
	JEQ	park
	CMPQ	AX, $0xfffffffffffff001
	JCS	ok
	NEGQ	AX
	MOVQ	$0, r+24(FP)
	MOVQ	AX, errno+32(FP)
	RET
ok:
	MOVQ	AX, r+24(FP)
	MOVQ	$0, errno+32(FP)
	RET
park:
	MOVQ	$SYS_prctl, AX
	MOVQ	$PR_SET_PDEATHSIG, DI
	MOVQ	$SIGKILL, SI
	SYSCALL
	MOVQ	$SYS_getppid, AX // the parent may have ended before the line above
	SYSCALL
	CMPQ	AX, R13
	JNE	die
sleep:
	MOVQ	$SYS_pause, AX
	SYSCALL
	JMP	sleep
die:
	MOVQ	$SYS_exit, AX
	MOVQ	$0, DI
	SYSCALL
	JMP	die
