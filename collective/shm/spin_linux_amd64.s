//go:build !noasm

#include "textflag.h"

// func spin(word *uint64, least uint64, most int) bool
TEXT ·spin(SB), NOSPLIT, $0-25
	MOVQ word+0(FP), AX
	MOVQ least+8(FP), BX
	MOVQ most+16(FP), CX

look:
	CMPQ (AX), BX
	JCC  reached
	PAUSE
	DECQ CX
	JGT  look
	MOVB $0, ret+24(FP)
	RET

reached:
	MOVB $1, ret+24(FP)
	RET
