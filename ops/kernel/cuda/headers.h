/* headers.h: the headers of generated kernels, as they are, for NVRTC (headers.inc). */
#ifndef WEFT_CUDA_HEADERS_H
#define WEFT_CUDA_HEADERS_H

extern const char *const cuda_header_names[], *const cuda_header_texts[];
extern const int cuda_n_headers;

#endif
