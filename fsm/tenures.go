package fsm

// tenures are those of all held keys, in the order of the keys: a balanced search tree (AVL). No
// branch of it is ever written to. A change makes new branches on the way to its key and shares all
// others with the tree before, some twenty new ones at a million keys. For that, whoever keeps a
// tree has what was held at that moment, whatever is granted and released since: a clone costs
// nothing, and a snapshot takes its time.
type tenures struct {
	top  *branch
	size int
}

type branch struct {
	key         string
	tenure      Tenure
	left, right *branch
	height      int // 1 if there is nothing below
}

// find returns the branch of a key, nil if there is none.
func (t tenures) find(key string) *branch {
	b := t.top
	for b != nil && b.key != key {
		if key < b.key {
			b = b.left
		} else {
			b = b.right
		}
	}
	return b
}

// with returns the branch with one more key, which it has not had.
func (b *branch) with(key string, tenure Tenure) *branch {
	switch {
	case b == nil:
		return &branch{key: key, tenure: tenure, height: 1}
	case key < b.key:
		return b.over(b.left.with(key, tenure), b.right)
	default:
		return b.over(b.left, b.right.with(key, tenure))
	}
}

// without returns the branch without a key, which it has had.
func (b *branch) without(key string) *branch {
	switch {
	case key < b.key:
		return b.over(b.left.without(key), b.right)
	case key > b.key:
		return b.over(b.left, b.right.without(key))
	case b.left == nil:
		return b.right
	case b.right == nil:
		return b.left
	}
	next := b.right // the key that follows takes the place
	for next.left != nil {
		next = next.left
	}
	return next.over(b.left, b.right.without(next.key))
}

// over returns a branch of b's key over two others, one of which may have grown or shrunk by one. If
// their heights differ by two then, the higher one's key goes on top, or where its inner side is the
// higher, that side's: so no way down is half as long again as it need be.
func (b *branch) over(left, right *branch) *branch {
	switch tilt := right.tall() - left.tall(); {
	case tilt < -1 && left.left.tall() >= left.right.tall():
		return left.on(left.left, b.on(left.right, right))
	case tilt < -1:
		top := left.right
		return top.on(left.on(left.left, top.left), b.on(top.right, right))
	case tilt > 1 && right.right.tall() >= right.left.tall():
		return right.on(b.on(left, right.left), right.right)
	case tilt > 1:
		top := right.left
		return top.on(b.on(left, top.left), right.on(top.right, right.right))
	}
	return b.on(left, right)
}

// on returns a branch of b's key on two others.
func (b *branch) on(left, right *branch) *branch {
	return &branch{b.key, b.tenure, left, right, 1 + max(left.tall(), right.tall())}
}

func (b *branch) tall() int {
	if b == nil {
		return 0
	}
	return b.height
}

// A walk goes through a tree in the order of keys, as far as it is asked to.
type walk struct {
	to []*branch // the last one is next, and after each comes what is on its right
}

func (t tenures) walk() walk {
	var w walk
	w.descend(t.top)
	return w
}

func (w *walk) descend(b *branch) {
	for ; b != nil; b = b.left {
		w.to = append(w.to, b)
	}
}

// next returns the next branch, nil at the end.
func (w *walk) next() *branch {
	last := len(w.to) - 1
	if last < 0 {
		return nil
	}
	b := w.to[last]
	w.to = w.to[:last]
	w.descend(b.right)
	return b
}
