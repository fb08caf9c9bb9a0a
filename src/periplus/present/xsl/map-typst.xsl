<?xml version="1.0" encoding="UTF-8"?>
<!--
  The map as a document for typst, which makes the PDF: a head, a legend, the branches of depth 1 as contents and bookmarks, a row a page.
  All text of the map stands in typst's string literals, where only \ and " mean something; both are escaped by the template `text`.
-->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:m="urn:periplus:map:1" xmlns:w="urn:periplus:words:1"
                xmlns:str="http://exslt.org/strings" exclude-result-prefixes="m w str">
  <xsl:output method="text" encoding="UTF-8"/>
  <xsl:param name="contents" select="60"/> <!-- branches that a table of contents names; more are left to the bookmarks -->

  <xsl:key name="word" match="w:word" use="@of"/>
  <xsl:variable name="linked" select="boolean(//m:linked)"/>
  <xsl:variable name="has-depth" select="boolean(//m:page/@depth)"/>
  <xsl:variable name="size" select="boolean(//m:page/@size)"/>
  <xsl:variable name="in" select="boolean(//m:page/@inlinks)"/>
  <xsl:variable name="out" select="boolean(//m:page/@outlinks)"/>
  <xsl:variable name="rank" select="boolean(//m:page/@rank)"/>
  <xsl:variable name="score" select="boolean(//m:page/@score)"/>
  <xsl:variable name="host" select="substring-before(concat(substring-after(/m:map/@start, '://'), '/'), '/')"/>
  <xsl:variable name="branches" select="count(/m:map/m:page/m:page[m:page])"/>

  <xsl:template match="/m:map">
    <xsl:text>#let host = </xsl:text><xsl:call-template name="text"><xsl:with-param name="of" select="$host"/></xsl:call-template>
    <xsl:text>&#10;#let heads = (</xsl:text>
    <xsl:if test="$has-depth">"depth", </xsl:if>
    <xsl:if test="$size">"size", </xsl:if>
    <xsl:if test="$in">"links in", </xsl:if>
    <xsl:if test="$out">"links out", </xsl:if>
    <xsl:if test="$rank">"rank", </xsl:if>
    <xsl:text>)&#10;#let has-linked = </xsl:text><xsl:value-of select="$linked"/>
    <xsl:text>&#10;#let has-score = </xsl:text><xsl:value-of select="$score"/>
    <xsl:call-template name="prelude"/>
    <xsl:text>&#10;#head(</xsl:text><xsl:call-template name="text"><xsl:with-param name="of" select="@start"/></xsl:call-template>
    <xsl:text>, (</xsl:text>
    <xsl:call-template name="figure"><xsl:with-param name="value" select="@pages"/><xsl:with-param name="one" select="'page'"/></xsl:call-template>
    <xsl:call-template name="figure"><xsl:with-param name="value" select="@deepest"/><xsl:with-param name="one" select="'click deep'"/><xsl:with-param name="many" select="'clicks deep'"/></xsl:call-template>
    <xsl:if test="@unreached != 0">
      <xsl:text>("</xsl:text><xsl:value-of select="format-number(@unreached, '#,##0')"/><xsl:text>", "reached by no link"), </xsl:text>
    </xsl:if>
    <xsl:variable name="omitted" select="sum(//@omitted)"/>
    <xsl:if test="$omitted">
      <xsl:text>("</xsl:text><xsl:value-of select="format-number($omitted, '#,##0')"/><xsl:text>", "not shown"), </xsl:text>
    </xsl:if>
    <xsl:text>), (&#10;</xsl:text>
    <xsl:call-template name="fact"><xsl:with-param name="name" select="'Run'"/><xsl:with-param name="value" select="@run"/></xsl:call-template>
    <xsl:call-template name="fact"><xsl:with-param name="name" select="'Made'"/><xsl:with-param name="value" select="concat(translate(@created, 'TZ', ' '), ' UTC by ', @program)"/></xsl:call-template>
    <xsl:call-template name="fact"><xsl:with-param name="name" select="'PageRank'"/><xsl:with-param name="value" select="concat('damping ', @damping, ', ', @rounds, ' rounds')"/></xsl:call-template>
    <xsl:call-template name="fact"><xsl:with-param name="name" select="'Parent of a page'"/><xsl:with-param name="value" select="concat('one click nearer to the home page; of several: ', @ties)"/></xsl:call-template>
    <xsl:for-each select="m:parameter">
      <xsl:call-template name="fact"><xsl:with-param name="name" select="@name"/><xsl:with-param name="value" select="@value"/></xsl:call-template>
    </xsl:for-each>
    <xsl:text>), </xsl:text><xsl:value-of select="$branches &gt; 1 and $branches &lt;= $contents"/>
    <xsl:text>)&#10;</xsl:text>
    <xsl:apply-templates select="m:page"><xsl:with-param name="depth" select="0"/></xsl:apply-templates>
  </xsl:template>

  <xsl:template name="figure">
    <xsl:param name="value"/>
    <xsl:param name="one"/>
    <xsl:param name="many" select="concat($one, 's')"/>
    <xsl:text>("</xsl:text><xsl:value-of select="format-number($value, '#,##0')"/><xsl:text>", "</xsl:text>
    <xsl:choose><xsl:when test="$value = 1"><xsl:value-of select="$one"/></xsl:when><xsl:otherwise><xsl:value-of select="$many"/></xsl:otherwise></xsl:choose>
    <xsl:text>"), </xsl:text>
  </xsl:template>

  <xsl:template name="fact">
    <xsl:param name="name"/>
    <xsl:param name="value"/>
    <xsl:text>  (</xsl:text><xsl:call-template name="text"><xsl:with-param name="of" select="$name"/></xsl:call-template>
    <xsl:text>, </xsl:text><xsl:call-template name="text"><xsl:with-param name="of" select="$value"/></xsl:call-template>
    <xsl:text>),&#10;</xsl:text>
  </xsl:template>

  <!-- #row(depth, name, url, pages in the branch, (remarks), dead, (bytes by class), (cells), score) -->
  <xsl:template match="m:page">
    <xsl:param name="depth"/>
    <xsl:text>#row(</xsl:text><xsl:value-of select="$depth"/><xsl:text>, </xsl:text>
    <xsl:call-template name="text">
      <xsl:with-param name="of">
        <xsl:choose>
          <xsl:when test="string-length(@w:name) &gt; 160"><xsl:value-of select="substring(@w:name, 1, 159)"/>…</xsl:when>
          <xsl:when test="@w:name"><xsl:value-of select="@w:name"/></xsl:when>
          <xsl:when test="@title"><xsl:value-of select="@title"/></xsl:when>
          <xsl:otherwise><xsl:value-of select="@url"/></xsl:otherwise>
        </xsl:choose>
      </xsl:with-param>
    </xsl:call-template>
    <xsl:text>, </xsl:text>
    <xsl:call-template name="text">
      <xsl:with-param name="of"><xsl:if test="starts-with(@url, 'http://') or starts-with(@url, 'https://')"><xsl:value-of select="@url"/></xsl:if></xsl:with-param>
    </xsl:call-template>
    <xsl:text>, "</xsl:text>
    <xsl:if test="m:page or @omitted">
      <xsl:value-of select="format-number(count(descendant-or-self::m:page) + sum(descendant-or-self::m:page/@omitted), '#,##0')"/>
    </xsl:if>
    <xsl:text>", (</xsl:text><xsl:call-template name="remarks"/><xsl:text>), </xsl:text>
    <xsl:value-of select="@state = 'failed' or @status &gt;= 400"/>
    <xsl:text>, (</xsl:text><xsl:apply-templates select="m:linked"/><xsl:text>), (</xsl:text>
    <xsl:if test="$has-depth">"<xsl:value-of select="@depth"/>", </xsl:if>
    <xsl:if test="$size">"<xsl:if test="@size != 0"><xsl:call-template name="size"><xsl:with-param name="bytes" select="@size"/></xsl:call-template></xsl:if>", </xsl:if>
    <xsl:if test="$in">"<xsl:value-of select="format-number(@inlinks, '#,##0')"/>", </xsl:if>
    <xsl:if test="$out">"<xsl:value-of select="format-number(@outlinks, '#,##0')"/>", </xsl:if>
    <xsl:if test="$rank">"<xsl:value-of select="@rank"/>", </xsl:if>
    <xsl:text>), </xsl:text>
    <xsl:value-of select="number(concat('0', @score))"/>
    <xsl:text>)&#10;</xsl:text>
    <xsl:apply-templates select="m:page"><xsl:with-param name="depth" select="$depth + 1"/></xsl:apply-templates>
  </xsl:template>

  <xsl:template name="remarks">
    <xsl:if test="(@reason and @reason != 'ok' and not(@reason = 'other-media' and @media_type)) or (not(@reason) and @state and @state != 'fetched') or @status &gt;= 300">
      <xsl:variable name="word" select="key('word', @reason)"/>
      <xsl:call-template name="text">
        <xsl:with-param name="of">
          <xsl:choose>
            <xsl:when test="$word"><xsl:value-of select="$word"/></xsl:when>
            <xsl:when test="@reason"><xsl:value-of select="@reason"/></xsl:when>
            <xsl:otherwise><xsl:value-of select="@state"/></xsl:otherwise>
          </xsl:choose>
          <xsl:if test="@status &gt;= 300"><xsl:text> </xsl:text><xsl:value-of select="@status"/></xsl:if>
        </xsl:with-param>
      </xsl:call-template>
      <xsl:text>, </xsl:text>
    </xsl:if>
    <xsl:if test="@media_type and @media_type != 'text/html' and @media_type != 'application/xhtml+xml'">
      <xsl:call-template name="text"><xsl:with-param name="of" select="@media_type"/></xsl:call-template>
      <xsl:text>, </xsl:text>
    </xsl:if>
    <xsl:if test="@omitted">"<xsl:value-of select="format-number(@omitted, '#,##0')"/> not shown", </xsl:if>
  </xsl:template>

  <xsl:template match="m:linked">
    <xsl:variable name="all" select="sum(@*[name() != 'unsized'])"/>
    <xsl:value-of select="concat(sum(@pages), ', ', sum(@documents), ', ', sum(@images), ', ', sum(@recordings), ', ', sum(@styles), ', ', sum(@scripts), ', ', sum(@other), ', ')"/>
    <xsl:text>"</xsl:text>
    <xsl:if test="$all"><xsl:call-template name="size"><xsl:with-param name="bytes" select="$all"/></xsl:call-template></xsl:if>
    <xsl:text>"</xsl:text>
  </xsl:template>

  <xsl:template name="text">
    <xsl:param name="of"/>
    <xsl:text>"</xsl:text>
    <xsl:value-of select="str:replace(str:replace(normalize-space($of), '\', '\\'), '&quot;', '\&quot;')"/>
    <xsl:text>"</xsl:text>
  </xsl:template>

  <!-- 812 B, 4.1 KB, 23 MB -->
  <xsl:template name="size">
    <xsl:param name="bytes"/>
    <xsl:choose>
      <xsl:when test="$bytes &lt; 1000"><xsl:value-of select="$bytes"/> B</xsl:when>
      <xsl:when test="$bytes &lt; 99950"><xsl:value-of select="format-number($bytes div 1000, '0.0')"/> KB</xsl:when>
      <xsl:when test="$bytes &lt; 999500"><xsl:value-of select="format-number($bytes div 1000, '0')"/> KB</xsl:when>
      <xsl:when test="$bytes &lt; 99950000"><xsl:value-of select="format-number($bytes div 1000000, '0.0')"/> MB</xsl:when>
      <xsl:when test="$bytes &lt; 999500000"><xsl:value-of select="format-number($bytes div 1000000, '0')"/> MB</xsl:when>
      <xsl:when test="$bytes &lt; 999500000000"><xsl:value-of select="format-number($bytes div 1000000000, '0.0')"/> GB</xsl:when>
      <xsl:otherwise><xsl:value-of select="format-number($bytes div 1000000000000, '#,##0.0')"/> TB</xsl:otherwise>
    </xsl:choose>
  </xsl:template>

  <xsl:template name="prelude"><![CDATA[
#let soft = rgb("#5d676e")
#let line-colour = rgb("#d8d6ce")
#let link-colour = rgb("#155e75")
#let dead-colour = rgb("#b3432f")
#let bar-colour = rgb("#9cc3c4")
#let classes = (
  ("pages", rgb("#7c9cb8")), ("documents", rgb("#b49a63")), ("images", rgb("#cf5f3c")), ("audio, video", rgb("#8a62a8")),
  ("styles", rgb("#5f9e7d")), ("scripts", rgb("#cdb43f")), ("other", rgb("#a3a8a5")),
)
#let widths = (1fr,)
#if has-linked { widths += (15mm, 13mm) }
#{ widths += heads.map(head => if head == "rank" { 17mm } else if head == "depth" { 8mm } else { 12mm }) }
#if has-score { widths += (16mm,) }
#let small = 7.5pt

#set document(title: "Map of " + host, date: none)
#set text(font: "Libertinus Serif", size: 9pt, lang: "en", hyphenate: false, number-width: "tabular")
#set par(leading: 0.45em)
#let titles = {
  let cells = ([page],)
  if has-linked { cells.push(grid.cell(colspan: 2)[behind its links]) }
  for head in heads { cells.push(align(right, head)) }
  if has-score { cells.push(align(right)[score]) }
  text(small, fill: soft, grid(columns: widths, column-gutter: 2mm, ..cells))
  v(-1.2mm)
  line(length: 100%, stroke: 0.4pt + line-colour)
}
#let first = state("first-page-of-rows", 0)
#set page(
  paper: "a4", margin: (x: 16mm, top: 20mm, bottom: 16mm),
  header: context { if first.get() > 0 { titles } },
  footer: text(small, fill: soft, grid(columns: (1fr, auto), host, context counter(page).display("1 of 1", both: true))),
)
#show heading: set text(size: 9pt, weight: "bold")
#show heading: it => it.body
#show link: set text(fill: link-colour)
// A run of signs without a space may be broken; else it would run into the figures.
#let breakable(name) = name.replace(regex("\S{20}"), found => found.text + "\u{200b}")
#let linked-to(url, body) = if url == "" { body } else { link(url, body) }

#let bar(sizes) = {
  let all = sizes.sum()
  if all > 0 {
    box(width: 15mm, height: 2mm, fill: rgb("#f1efe8"), stack(dir: ltr, ..sizes.zip(classes).filter(part => part.at(0) > 0).map(part => rect(width: 15mm * (part.at(0) / all), height: 2mm, fill: part.at(1).at(1)))))
  }
}

#let row(depth, name, url, pages, remarks, dead, linked, cells, score) = {
  set text(top-edge: 6.5pt, bottom-edge: -2pt) // one line height for all sizes, so that figures stand on the name's line
  let shown = linked-to(url, breakable(name))
  let title = if depth == 0 { strong(shown) } else if depth == 1 and pages != "" { heading(level: 1, shown) } else { shown }
  let figures = (pad(left: 3mm * calc.min(depth, 14), par(hanging-indent: 3mm, {
    title
    if pages != "" { text(small, fill: soft)[\u{200e}#h(1.2mm, weak: false)#pages] }
    for remark in remarks { text(small, fill: if dead { dead-colour } else { soft })[#h(1.5mm) #sym.dot.c #remark] }
  })),)
  if has-linked {
    if linked.len() > 0 { figures += (bar(linked.slice(0, 7)), align(right, text(small, fill: soft, linked.at(7)))) } else { figures += ([], []) }
  }
  figures += cells.map(cell => align(right, text(small, fill: soft, cell)))
  if has-score {
    figures.push(align(right)[#box(width: 9mm, height: 1.5mm, fill: rgb("#f1efe8"), align(left, rect(width: 9mm * (score / 100), height: 1.5mm, fill: bar-colour)))#box(width: 6mm, text(small, fill: soft, str(score)))])
  }
  block(above: if depth == 1 and pages != "" { 2.2mm } else { 1.1mm }, below: 1.1mm, breakable: false, grid(columns: widths, column-gutter: 2mm, ..figures))
}

#let head(start, figures, facts, contents) = {
  text(22pt, weight: "bold", breakable(host))
  v(-2mm)
  text(soft)[Map of the site, crawled from #linked-to(start, breakable(start))]
  v(3mm)
  grid(columns: figures.len(), column-gutter: 10mm, row-gutter: 1.5mm,
    ..figures.map(figure => text(15pt, figure.at(0))), ..figures.map(figure => text(small, fill: soft, figure.at(1))))
  v(3mm)
  [Each page hangs from a page one click nearer to the home page. Beside a name stands the number of pages in its branch. The score is PageRank on a logarithmic scale, from 0 to 100.]
  if has-linked {
    v(1mm)
    [Bytes behind a page’s links: ]
    for (name, colour) in classes { box(inset: (right: 3mm), [#box(width: 2.2mm, height: 2.2mm, fill: colour) #name]) }
  }
  v(3mm)
  text(small, fill: soft, grid(columns: (34mm, 1fr), row-gutter: 1.6mm, ..facts.map(fact => (breakable(fact.at(0)), breakable(fact.at(1)))).flatten()))
  v(3mm)
  if contents {
    show outline.entry: set block(spacing: 1.3mm)
    show outline.entry: set text(fill: rgb("#22272b"))
    text(11pt, weight: "bold")[Branches]
    v(-1mm)
    outline(title: none, depth: 1)
    first.update(1)
    pagebreak()
  } else {
    titles
    first.update(1)
  }
}
]]></xsl:template>
</xsl:stylesheet>
