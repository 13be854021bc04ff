//go:build gpu && cgo && linux

// gorgonia.org/cu refers to the driver's functions by name, so a program with it would need
// libcuda.so.1 to start. The functions here have the same names. Each jumps through a table
// that trampolines_gpu.c fills when it loads the driver.

	.text

#if defined(__x86_64__)

.macro trampoline name, slot
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.p2align 4
\name:
	endbr64
	jmp	*ringtrain_driver+8*\slot(%rip)
	.size	\name, . - \name
.endm

#elif defined(__aarch64__)

.macro trampoline name, slot
	.globl	\name
	.hidden	\name
	.type	\name, %function
	.p2align 2
\name:
	hint	#34 // bti c
	adrp	x16, ringtrain_driver+8*\slot
	ldr	x16, [x16, #:lo12:ringtrain_driver+8*\slot]
	br	x16
	.size	\name, . - \name
.endm

#else
#error "GPUs are for amd64 and arm64: build without -tags gpu"
#endif

#define SYMBOL(slot, name, other, called) trampoline name, slot
#include "symbols_gpu.h"

	.section .note.GNU-stack, "", %progbits
