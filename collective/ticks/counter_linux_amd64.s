//go:build !noasm

#include "textflag.h"

// func counter() Ticks
TEXT ·counter(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ret+0(FP)
	RET

// func amd() bool
TEXT ·amd(SB), NOSPLIT, $0-1
	XORL AX, AX
	XORL CX, CX
	CPUID // leaves AuthenticAMD in BX, DX, CX
	CMPL BX, $0x68747541
	JNE  other
	CMPL DX, $0x69746e65
	JNE  other
	CMPL CX, $0x444d4163
	JNE  other
	MOVB $1, ret+0(FP)
	RET

other:
	MOVB $0, ret+0(FP)
	RET
