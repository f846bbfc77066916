// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

#define SYS_clone3 435

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
