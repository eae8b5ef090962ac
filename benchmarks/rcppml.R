# Seconds that RcppML needs to reach an error: Rscript rcppml.R FOLDER ROWS COLUMNS K GOAL THREADS
# FOLDER holds x.bin (dense, by columns), or data.bin, rows.bin and ends.bin (sparse, by columns).
suppressMessages({library(RcppML); library(Matrix)})
given <- commandArgs(TRUE)
numbers <- as.numeric(given[2:6])
numeric_file <- function(name, kind) {
  path <- file.path(given[1], name)
  readBin(path, kind, file.size(path) / ifelse(kind == "integer", 4, 8))
}
if (file.exists(file.path(given[1], "x.bin"))) {
  A <- matrix(numeric_file("x.bin", "double"), numbers[1], numbers[2])
} else {
  A <- new("dgCMatrix", x = numeric_file("data.bin", "double"), i = numeric_file("rows.bin", "integer"),
           p = numeric_file("ends.bin", "integer"), Dim = as.integer(numbers[1:2]))
}
setRcppMLthreads(numbers[5])
size <- if (is.matrix(A)) sum(A^2) else sum(A@x^2)
for (steps in c(2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 100, 150, 200)) {
  seconds <- system.time(found <- nmf(A, numbers[3], tol = 0, maxit = steps, seed = 1, verbose = FALSE))
  h <- found$d * found$h
  fitted <- sum(as.matrix(crossprod(found$w, A)) * h)
  error <- sqrt(size - 2 * fitted + sum(crossprod(found$w) * tcrossprod(h)))
  if (error <= numbers[4]) break
}
again <- min(replicate(2, system.time(nmf(A, numbers[3], tol = 0, maxit = steps, seed = 1, verbose = FALSE))[["elapsed"]]))
cat(min(seconds[["elapsed"]], again), steps, error, error <= numbers[4])
