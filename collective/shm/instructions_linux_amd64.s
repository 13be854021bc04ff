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

// func yield(word *uint64, least uint64, most int) bool
TEXT ·yield(SB), NOSPLIT, $0-25
	MOVQ word+0(FP), SI
	MOVQ least+8(FP), BX
	MOVQ most+16(FP), DX

try:
	CMPQ (SI), BX
	JCC  there
	MOVL $24, AX // SYS_SCHED_YIELD
	SYSCALL      // overwrites AX, CX and R11 only
	DECQ DX
	JGT  try
	MOVB $0, ret+24(FP)
	RET

there:
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

// func moveStream(to, from *byte, n int)
TEXT ·moveStream(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), BX
	CLD

	// Ordinary stores up to a whole line.
	MOVQ DI, CX
	NEGQ CX
	ANDQ $63, CX
	CMPQ CX, BX
	CMOVQHI BX, CX
	SUBQ CX, BX
	REP; MOVSB

lines:
	SUBQ $64, BX
	JCS  rest
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ $64, SI
	ADDQ $64, DI
	JMP  lines

rest:
	ADDQ $64, BX
	MOVQ BX, CX
	REP; MOVSB
	SFENCE // or a later store, such as that of a flag, could be seen before these
	RET

// func flushLine(word *uint64)
TEXT ·flushLine(SB), NOSPLIT, $0-8
	MOVQ    word+0(FP), AX
	CLFLUSH (AX)
	MFENCE
	RET

// func loadTicks(word *uint64) uint64
TEXT ·loadTicks(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), BX
	LFENCE
	RDTSC
	LFENCE // the load does not begin before the counter is read
	MOVL AX, SI
	MOVQ (BX), CX
	LFENCE // the counter is not read before the load has ended
	RDTSC
	LFENCE
	SUBL SI, AX
	MOVQ AX, ret+8(FP)
	RET
