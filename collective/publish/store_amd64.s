//go:build !noasm && !race

#include "textflag.h"

// func Store(word *uint64, value uint64)
TEXT ·Store(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), AX
	MOVQ value+8(FP), BX
	MOVQ BX, (AX)
	RET

// func Prefetch(memory []byte)
TEXT ·Prefetch(SB), NOSPLIT, $0-24
	MOVQ memory_base+0(FP), AX
	MOVQ memory_len+8(FP), BX

next:
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	ADDQ $64, AX
	SUBQ $64, BX
	JGT  next
	RET

// func Fence()
TEXT ·Fence(SB), NOSPLIT, $0-0
	LOCK
	ORL $0, 0(SP) // faster than MFENCE
	RET
