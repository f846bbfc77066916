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

// func cloneVfork(args *cloneArgs, size uintptr) (r, errno uintptr)
//
// The child returns first, on this very stack, and its calls overwrite the
// return address. So the address is kept in a register, which the kernel
// restores in parent and child alike, and is put back before the return.
TEXT ·cloneVfork(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ	args+0(FP), DI
	MOVQ	size+8(FP), SI
	MOVQ	$SYS_clone3, AX
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	CMPQ	AX, $0xfffffffffffff001
	JCS	done
	NEGQ	AX
	MOVQ	$0, r+16(FP)
	MOVQ	AX, errno+24(FP)
	RET
done:
	MOVQ	AX, r+16(FP)
	MOVQ	$0, errno+24(FP)
	RET

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
