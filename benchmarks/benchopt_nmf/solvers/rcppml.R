# Fits on demand: Rscript rcppml.R FOLDER FEATURES SAMPLES K THREADS
# FOLDER holds x.bin (dense), or data.bin, rows.bin and ends.bin (sparse), both by columns.
# A line "fit N" fits N iterations, "write 0" writes U.bin (features × k) and V.bin (k × samples) by columns.
suppressMessages({library(RcppML); library(Matrix)})
given <- commandArgs(TRUE)
numbers <- as.integer(given[2:5])
place <- function(name) file.path(given[1], name)
numeric_file <- function(name, kind) {
  readBin(place(name), kind, file.size(place(name)) / ifelse(kind == "integer", 4, 8))
}
if (file.exists(place("x.bin"))) {
  A <- matrix(numeric_file("x.bin", "double"), numbers[1], numbers[2])
} else {
  A <- new("dgCMatrix", x = numeric_file("data.bin", "double"), i = numeric_file("rows.bin", "integer"),
           p = numeric_file("ends.bin", "integer"), Dim = numbers[1:2])
}
setRcppMLthreads(numbers[4])
used <- function() sum(proc.time()[1:2])
began <- used()
answer <- function(word) {
  cat(word, " ", used() - began, "\n", sep = "")
  flush(stdout())
  began <<- used()
}
orders <- file("stdin", "r")
answer("ready")
while (length(line <- readLines(orders, 1)) > 0) {
  words <- strsplit(line, " ")[[1]]
  if (words[1] == "fit") {
    found <- nmf(A, numbers[3], tol = 0, maxit = as.integer(words[2]), seed = 1, verbose = FALSE)
    answer("fitted")
  } else {
    writeBin(as.vector(found$w), place("U.bin"))
    writeBin(as.vector(found$d * found$h), place("V.bin"))
    answer("written")
  }
}
