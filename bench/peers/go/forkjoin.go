package main

import (
	"math"
	"sync"
)

var forkJoinWorks = []work{{"fib30", fib30}, {"skynet", skynet}, {"nqueens", nqueens}, {"matmul", matmul}}

func fib(n int) uint64 {
	if n < 2 {
		return uint64(n)
	}
	var x uint64
	var forked sync.WaitGroup
	forked.Go(func() { x = fib(n - 1) })
	y := fib(n - 2)
	forked.Wait()
	return x + y
}

func fibSequential(n int) uint64 {
	a, b := uint64(0), uint64(1)
	for range n {
		a, b = b, a+b
	}
	return a
}

func fib30(o options) result {
	n := max(5, 30+int(math.Log(min(o.scale, 1))/math.Log(1.618)))
	return measure(int(fibSequential(n+1)-1), func() { check(fib(n), fibSequential(n), "fib") })
}

func skynetNode(first, leaves uint64) uint64 {
	if leaves == 1 {
		return first
	}
	parts := make(chan uint64, 10)
	for i := range uint64(10) {
		go func() { parts <- skynetNode(first+i*(leaves/10), leaves/10) }()
	}
	sum := uint64(0)
	for range 10 {
		sum += <-parts
	}
	return sum
}

func skynet(o options) result {
	leaves := 10
	for leaves*10 <= o.count(1_000_000) {
		leaves *= 10
	}
	return measure(leaves, func() {
		check(skynetNode(0, uint64(leaves)), uint64(leaves)*uint64(leaves-1)/2, "skynet")
	})
}

const queensMax = 16

type board [queensMax]int8

func (b *board) fits(row, column int) bool {
	for r := range row {
		if at := int(b[r]); at == column || at == column-(row-r) || at == column+(row-r) {
			return false
		}
	}
	return true
}

func queens(n, row int, b board) uint64 {
	if row == n {
		return 1
	}
	var parts [queensMax]uint64
	var forked sync.WaitGroup
	for column := range n {
		if b.fits(row, column) {
			next := b
			next[row] = int8(column)
			forked.Go(func() { parts[column] = queens(n, row+1, next) })
		}
	}
	forked.Wait()
	sum := uint64(0)
	for _, part := range parts {
		sum += part
	}
	return sum
}

func nqueens(o options) result {
	n, want := 11, uint64(2680)
	if o.scale < 1 {
		n, want = 8, 92
	}
	return measure(1, func() { check(queens(n, 0, board{}), want, "queens") })
}

const matrixLeaf = 32

func multiplyLeaf(a, b, c []int32, n, stride int) {
	for i := range n {
		row := c[i*stride:][:n]
		for k := range n {
			factor := a[i*stride+k]
			for j, v := range b[k*stride:][:n] {
				row[j] += factor * v
			}
		}
	}
}

func multiply(a, b, c []int32, n, stride int) {
	if n <= matrixLeaf {
		multiplyLeaf(a, b, c, n, stride)
		return
	}
	h := n / 2
	down := h * stride
	for _, k := range []int{0, 1} { // the two halves of the inner dimension
		a, b := a[k*h:], b[k*down:]
		var forked sync.WaitGroup
		forked.Go(func() { multiply(a, b, c, h, stride) })
		forked.Go(func() { multiply(a, b[h:], c[h:], h, stride) })
		forked.Go(func() { multiply(a[down:], b, c[down:], h, stride) })
		forked.Go(func() { multiply(a[down:], b[h:], c[down+h:], h, stride) })
		forked.Wait()
	}
}

func matmul(o options) result {
	n := 512
	if o.scale < 1 {
		n = 64
	}
	a, b, c := make([]int32, n*n), make([]int32, n*n), make([]int32, n*n)
	for i := range a {
		a[i], b[i] = 1, 1
	}
	return measure(1, func() {
		clear(c)
		multiply(a, b, c, n, n)
		for _, v := range c {
			check(uint64(v), uint64(n), "element of the product")
		}
	})
}
