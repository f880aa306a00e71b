// The bytes of the widest vector register that the compiler may use.

#ifndef VECTOR_H
#define VECTOR_H

#if defined(__AVX512F__)
#define VECTOR 64
#elif defined(__AVX__)
#define VECTOR 32
#else
#define VECTOR 16
#endif

#endif
