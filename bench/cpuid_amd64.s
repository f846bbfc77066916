// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func cpuid()
TEXT ·cpuid(SB), NOSPLIT, $0-0
	XORL	AX, AX
	XORL	CX, CX
	CPUID
	RET
