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

// func core() uint64
TEXT ·core(SB), NOSPLIT, $0-8
	RDTSCP // leaves in CX what Linux has put there: the node << 12 | the core
	ANDL $0xfff, CX
	INCQ CX
	MOVQ CX, ret+0(FP)
	RET

// func tellsCore() bool
TEXT ·tellsCore(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	MOVL $0x80000000, AX
	CPUID
	CMPL AX, $0x80000001
	JCS  none
	MOVL $0x80000001, AX
	CPUID
	SHRL $27, DX
	ANDL $1, DX
	MOVB DX, ret+0(FP)

none:
	RET

// func moveString(to, from *byte, n int)
TEXT ·moveString(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
	CLD
	REP; MOVSB
	RET
