"""Turkish topics; slots stand where they need no case ending."""

from __future__ import annotations

from databuild.sources.demo_text.languages import language

POOLS = """
first: Ayşe, Mehmet, Elif, Can, Zeynep, Emre, Deniz, Selin, Burak, Ece, Kerem, Defne, Mert, Leyla, Ozan, Nazlı
city: Ankara, İzmir, Bursa, Konya, Trabzon, Antalya, Mardin, Edirne, Kars, Samsun, Eskişehir, Gaziantep, Sinop, Muğla
thing: defter, kalem, bardak, tabak, kitap, mum, zarf, fırça, sepet, yastık, fener, limon
object: eski bir saat, gümüş bir anahtar, kırmızı bir şemsiye, bir müzik kutusu, yırtık bir harita, bir pusula,
  kâğıttan bir gemi, imzasız bir mektup
animal: gri bir kedi, bir leylek, yaşlı bir köpek, bir kaplumbağa, bir eşek, bir baykuş, bir tilki, bir kırlangıç
place: garda, pazarda, limanda, kütüphanede, değirmende, meydanda, fenerin yanında, tiyatroda
dish: mercimek çorbası, zeytinyağlı fasulye, bulgur pilavı, elmalı kek, ıspanaklı börek, nohutlu salata, sebze güveci
day: pazartesi, salı, çarşamba, perşembe, cuma, cumartesi, pazar
fact: Fotosentez=bitkilerin ışık, su ve karbondioksitten şeker üretmesidir | Gökkuşağı=yağmur damlalarının
  renklerine ayırdığı
  güneş ışığıdır | Enflasyon=fiyatların zamanla genel olarak artmasıdır | Algoritma=bir tür sorunu çözen adımların
  kesin
  listesidir | Gelgit=denizin en çok ayın çekimiyle düzenli olarak alçalıp yükselmesidir | Benzetme=bir şeyi başka
  bir şeye
  benzeterek anlatmaktır | Ay tutulması=ayın dünyanın gölgesinden geçmesidir | Asal sayı=birden büyük olan ve
  yalnızca bire
  ve kendisine bölünen sayıdır
pair: Where is the station?=İstasyon nerede? | I arrive on May {i_2_28}.={i_2_28} Mayıs günü geliyorum. | It is
  raining
  today.=Bugün yağmur yağıyor. | We need {i_5_40} chairs.={i_5_40} sandalyeye ihtiyacımız var. | The name of the
  city is
  {city}.=Şehrin adı {city}. | My room is number {i_100_900}.=Oda numaram {i_100_900}. | Thank you for the
  letter.=Mektup için
  teşekkürler. | My friend is called {first}.=Arkadaşımın adı {first}.
good: Hizmet mükemmeldi, {first} çok yardımcı oldu. | Her şey {i_2_9} günde sağlam geldi. | Hiç düşünmeden yine
  alırım. |
  {city} şubesinde herkes güler yüzlüydü.
bad: {i_2_20} gün sonra bozuldu. | {i_30_90} dakika bekledim, kimse gelmedi. | {city} şubesi cevap vermiyor. |
  Kötü kokuyor ve {i_40_300} liraya aldım.
labels: olumlu, olumsuz
"""

SCRIPT = """
@ shop shop
? {first}, tanesi {p} lira olan {n} {thing} alıyor ve {b} lira veriyor. Para üstü ne kadardır?
? {city} çarşısında tanesi {p} liradan {n} {thing} aldım ve {b} lira ödedim. Ne kadar geri alırım?
= Önce toplam fiyat: {n} × {p} = {t} lira. Sonra para üstü: {b} - {t} = **{c} lira**.
= Para üstü {c} liradır, çünkü {n} × {p} = {t} ve {b} - {t} = {c}.
> Peki bir tanesi ne kadar?
< Bir tanesi {p} liradır.
@ travel travel
? Bir tren {h} saat boyunca saatte {v} km hızla gidiyor, sonra {left} km daha yol alıyor. Toplam yol kaç
  kilometredir? (Soran:
  {first}, {city})
? {first} {h} saat boyunca saatte ortalama {v} km hızla yol alıyor, ardından {left} km daha gidiyor. Toplam kaç km
  eder?
= {h} saatte {v} × {h} = {km} km gidilir. Kalan {left} km ile birlikte {km} + {left} = **{all} km** eder.
@ area area
? Bir bahçenin uzunluğu {a} m, genişliği {b} m. Alanı ve çevresi nedir? Bahçenin sahibi {first}, şehir {city}.
? {first} dikdörtgen bir tarlayı çitle çevirmek istiyor: {a} m ve {b} m. Çevreyi ve alanı hesapla.
= Alan: {a} × {b} = {area} m². Çevre: 2 × ({a} + {b}) = 2 × {sum} = {per} m.
@ fact fact
? {term} nedir? {i_6_12} yaşındaki bir çocuk için tek cümleyle anlat. Çocuğun adı {first}, şehri {city}.
? {first} bana şunu sordu: “{term} nedir?” Ne cevap vereyim? ({city}, {i_2_28} Mayıs)
? “{term}” ne demek? {first} bunu {i_2_9} günde nasıl aklında tutar?
= [Kısaca|Kısa bir cevap]: {term}, {what}. [Akılda tutmak için|Unutmamak için] resmini çizmek ve birine anlatmak
  iyi gelir.
  [Belki {first2} dinler|{first2} bunu denedi ve memnun kaldı].
= {term}, {what}. [Sonra|Ardından] {place} bir örnek aranabilir.
@ story
? İçinde {animal} olan kısa bir hikâye yaz. Kahramanın adı {first} olsun.
? Bana {first} ve {first2} hakkında bir masal anlat. Şehir: {city}.
= [O gece|Bir kış sabahı|{i_20_90} yıl önce] {first} {place} {object} buldu. [Kimin olduğunu kimse bilmiyordu|Sanki
  birini
  bekliyordu]. Birden {animal} çıkageldi ve [yanına oturdu|korkmadan baktı]. [Birlikte yürüdüler|Nehri izlediler],
  tam {i_2_9}
  saat. Sonunda {first2} kapıyı açtı ve “[Hoş geldiniz|Sizi bekliyordum]” dedi. [O günden beri|Ondan sonra] sofrada
  her {day}
  {dish} var.
@ letter
? {first} için bir e-posta yaz: {day} günü gelemiyorum, başka bir gün öneriyorum.
? {day} günkü buluşmamızı ertelemek için kibar bir mesaj lazım. Alıcı: {first}, {city}.
= Merhaba {first},¶¶[maalesef|çok üzgünüm ama] {day} günü gelemiyorum. Acaba {day2} günü saat {i_5_11} için {place}
  [buluşalım
  mı|görüşebilir miyiz]? [Başka bir gün istersen yaz lütfen|Başka bir gün de olur].¶¶[Sevgiler|Selamlar],¶{first2}
@ recipe
? {i_2_9} kişilik {dish} nasıl yapılır?
? {first} {day} günü {dish} yapmak istiyor. Adımlar neler?
= 1. Malzemeleri hazırlayın: {dish}, {i_2_9} kişilik.¶2. Hepsini yıkayıp [küçük küçük|ince ince] doğrayın.¶3.
  [Kısık|Orta]
  ateşte {i_15_50} dakika pişirin.¶4. Tuz, yağ ve [biraz limon|taze otlar] ekleyin.¶¶[{i_5_15} dakika
  dinlendirin|Hemen
  servis edin]. Afiyet olsun!
@ review review
? Bu yorum olumlu mu, olumsuz mu? “{review}” Tek kelimeyle cevap ver.
! [{label}|Yorum {label}.]
? Yorumu sınıflandır (olumlu ya da olumsuz) ve nedenini söyle: {review}
! Bu yorum {label}. Nedeni şu sözler: “{text}”
@ translate pairs
? Türkçeye çevir: {en}
? Say it in Turkish, please. {en}
= {own}
= [Türkçesi|In Turkish]: “{own}”
"""

TOPICS = language("tr", POOLS, SCRIPT)
