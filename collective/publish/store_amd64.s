//go:build !noasm && !race

#include "textflag.h"

// func Store(word *uint64, value uint64)
TEXT ·Store(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), AX
	MOVQ value+8(FP), BX
	MOVQ BX, (AX)
	RET

// func Fence()
TEXT ·Fence(SB), NOSPLIT, $0-0
	LOCK
	ORL $0, 0(SP) // faster than MFENCE
	RET
