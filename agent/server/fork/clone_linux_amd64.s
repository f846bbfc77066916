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

#define SYS_clone 56

// func cloneVforkOld(flags uintptr, pidfd *int32) (r, errno uintptr)
//
// As cloneVfork, by the call that every kernel has and no profile forbids.
TEXT ·cloneVforkOld(SB), NOSPLIT|NOFRAME, $0-32
	MOVQ	flags+0(FP), DI
	MOVQ	$0, SI
	MOVQ	pidfd+8(FP), DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$SYS_clone, AX
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

// func cloneKeeper(flags, stack, local, entry uintptr, pidfd *int32, k *kept) (r, errno uintptr)
//
// The child begins at entry, which is keep, on a stack of its own, and does not return. It is called as compiled
// code calls it (k in AX, R14 and X15 zero): the wrapper for assembler is one that the race detector instruments.
TEXT ·cloneKeeper(SB), NOSPLIT, $16-64
	MOVQ	flags+0(FP), DI
	MOVQ	stack+8(FP), SI
	MOVQ	local+16(FP), R8
	MOVQ	entry+24(FP), R13
	MOVQ	pidfd+32(FP), DX
	MOVQ	k+40(FP), R12
	MOVQ	$0, R10
	MOVQ	$SYS_clone, AX
	SYSCALL
	CMPQ	AX, $0
	JEQ	child
	CMPQ	AX, $0xfffffffffffff001
	JCS	done
	NEGQ	AX
	MOVQ	$0, r+48(FP)
	MOVQ	AX, errno+56(FP)
	RET
done:
	MOVQ	AX, r+48(FP)
	MOVQ	$0, errno+56(FP)
	RET
child:
	MOVQ	R12, AX
	XORPS	X15, X15
	XORQ	R14, R14
	XORQ	BP, BP
	CALL	R13
	INT	$3
