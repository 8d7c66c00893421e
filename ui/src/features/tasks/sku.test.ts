import { describe, expect, it } from 'vitest';

import { goods, skus } from '../../test/sample';
import { layOut } from './sku';

describe('SKU layout', () => {
  it('is a matrix for two dimensions, in page order', () => {
    const layout = layOut(goods().dimensions, skus());
    if (layout.kind !== 'matrix') throw new Error('two dimensions make a matrix');
    expect(layout.columns, 'sizes across').toEqual(['1.2米床', '1.5米床', '1.8米床']);
    expect(
      layout.rows.map((row) => row.text),
      'colours down',
    ).toEqual(['奶茶色', '雾霾蓝', '高级灰', '抹茶绿']);
    expect(layout.rows[1]?.cells[2]?.priceCent, 'each cell is its own SKU').toBe(6290);
  });

  it('leaves a combination the page lacks empty, and shows one the page names only in a SKU', () => {
    const [first] = skus();
    const layout = layOut(goods().dimensions, [first!, { ...first!, options: ['藏青', '均码'], priceCent: 1 }]);
    if (layout.kind !== 'matrix') throw new Error('two dimensions make a matrix');
    expect(layout.rows[1]?.cells[0], 'nothing was read there').toBeNull();
    expect(layout.rows.at(-1)?.cells.at(-1)?.priceCent, 'nothing that was read is hidden').toBe(1);
  });

  it('is a list otherwise', () => {
    const one = layOut([{ key: 'color', name: '颜色', values: [] }], [{ ...skus()[0]!, options: ['奶茶色'] }]);
    expect(one, 'one dimension reads down').toMatchObject({
      kind: 'lines',
      names: ['颜色'],
      rows: [{ options: ['奶茶色'] }],
    });
    expect(layOut([], [{ ...skus()[0]!, options: [] }]), 'no dimension is a single row').toMatchObject({
      kind: 'lines',
      names: [],
    });
  });
});
