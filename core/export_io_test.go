package core

// What the tests of descriptors and I/O ops look into.

func (t *DescriptorTable) Record(handle uint64) *DescriptorMemory {
	return t.recordAt(handle&0xffffff - 1)
}

func (t *DescriptorTable) SetUsed(used uint32) { t.used = used }

func (t *DescriptorTable) CloseAll() { t.closeAll(); t.used = 0 }

func (t *DescriptorTable) CancelAll() (ops []*Op) {
	var c chain
	t.cancelAll(&c)
	for op := c.first; op != nil; op = at[Op](op.Next) {
		ops = append(ops, op)
	}
	return ops
}

func (d *DescriptorMemory) Claim(direction int) (bool, Error)             { return d.claim(direction) }
func (t *DescriptorTable) Unclaim(d *DescriptorMemory, direction int)     { t.unclaim(d, direction) }
func (t *DescriptorTable) ReleaseSlot(d *DescriptorMemory, direction int) { t.release(d, direction) }
func (io *IO) RetryOp() *Op                                               { return io.retry() }
func (t *DescriptorTable) Busy() bool                                     { return t.busy() }
